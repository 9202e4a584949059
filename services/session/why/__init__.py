"""WHY and WHY NOT over the topics of a view."""
