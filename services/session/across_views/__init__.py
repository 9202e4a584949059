"""What other views keep already of what a query would keep."""
