"""BACKUP VIEW and RESTORE VIEW: what a view resumes from, in a folder, and back on another machine."""
