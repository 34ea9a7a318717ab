"""check_page.py PAGE: the page is well formed, whole, and needs nothing else."""

import html.parser
import sys
import xml.etree.ElementTree

path = sys.argv[1]
text = open(path, encoding="utf-8").read()
root = xml.etree.ElementTree.fromstring(text)
name = "{http://www.w3.org/1999/xhtml}"


class Tags(html.parser.HTMLParser):
    """What a browser sees."""

    def __init__(self):
        super().__init__()
        self.seen, self.attributes = [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        self.attributes += attributes


tags = Tags()
tags.feed(text)
elements = list(root.iter())
assert len(tags.seen) == len(elements), (len(tags.seen), len(elements))
assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & set(tags.seen)
for attribute, value in tags.attributes:
    assert not attribute.startswith("on") and attribute not in ("src", "href", "srcset"), (attribute, value)
style = root.find(f".//{name}style").text
assert "url(" not in style and "@import" not in style

# Every id once; every drawing has a name or is hidden from readers.
ids = [element.get("id") for element in elements if element.get("id")]
assert len(ids) == len(set(ids)), ids
for drawing in root.iter(f"{name}svg"):
    assert drawing.get("aria-label") or drawing.get("aria-hidden") == "true"

# Coordinates are numbers inside of the drawing.
for drawing in root.iter(f"{name}svg"):
    width, height = map(float, drawing.get("viewBox").split()[2:])
    for shape in drawing.iter():
        for attribute, limit in (("x", width), ("cx", width), ("y", height), ("cy", height)):
            value = float(shape.get(attribute, 0))
            assert -0.01 <= value <= limit + 0.01, (shape.tag, attribute, value, limit)
        for attribute in ("width", "height", "r"):
            assert float(shape.get(attribute, 0)) >= 0, (shape.tag, attribute, shape.get(attribute))
print("page:", len(elements), "elements,", sum(1 for _ in root.iter(f"{name}circle")), "circles")
