"""What cached layouts are composed of: the hot tier, the cold tier, flights, the filling of both, and settings."""
