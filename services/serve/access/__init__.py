"""Who may do what: users with tokens, and roles."""
