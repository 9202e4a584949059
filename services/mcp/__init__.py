"""What a program that speaks the Model Context Protocol may ask of Dovetail."""
