"""The pages say what the code does: each list on a page is compared with what the code declares, both ways."""
