"""WAIT FOR: until a view has answered records of its inputs."""
