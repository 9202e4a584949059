"""What several views keep of the same inputs, each for itself."""
