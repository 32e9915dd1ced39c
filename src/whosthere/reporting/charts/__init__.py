"""Pictures as SVG: what each shows is a value, which draws itself.

The style sheet knows their classes. Series differ by shape or dash as well as by colour, and every
point says its values in a ``<title>``.
"""
