"""Completion in bash, zsh and other shells."""
