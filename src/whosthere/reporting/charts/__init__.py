"""Pictures as SVG: what each shows is a value, which draws itself.

Colours and line styles come from classes that the style sheet knows. Series differ by shape or
dash as well, so that a picture is readable in black and white. Every point says its values in a
``<title>``, which browsers show where the pointer rests.
"""
