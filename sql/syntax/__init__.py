"""From text to statements."""
