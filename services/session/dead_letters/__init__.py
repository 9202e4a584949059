"""Dead letters as a session sees them: asked, counted, put back."""
