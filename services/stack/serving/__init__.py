"""The component that answers over HTTP."""
