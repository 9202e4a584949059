"""``dovetail dictionary``: what there is, what it holds, its refresh."""
