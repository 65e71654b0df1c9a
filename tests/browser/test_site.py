"""Opens the site of all documents as files: nothing is clipped, its code is coloured, and its search finds pages."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import chromium

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("TIDEPOOL_PROGRAM", str(ROOT / "build" / "tidepool"))
WIDE, PHONE = 1400, 400

# The elements that extend beyond the edge of the page, except those inside an element that scrolls.
CLIPPED = """[...document.querySelectorAll("main *")].filter(element =>
  !element.closest("pre, table") && element.getBoundingClientRect().right > innerWidth).map(element => element.outerHTML)"""
# The blocks and tables that are wider than their box.
SCROLLED = """[...document.querySelectorAll("pre, table")].filter(element =>
  element.scrollWidth > element.clientWidth + 1).map(element => element.textContent.slice(0, 60))"""
BROKEN_IMAGES = "[...document.images].filter(image => !image.naturalWidth).map(image => image.src)"


@unittest.skipUnless(chromium.find(), "no Chromium is installed")
@unittest.skipUnless(shutil.which("mkdocs") and importlib.util.find_spec("pygments"), "mkdocs or Pygments is not installed")
class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.site = pathlib.Path(cls.scratch.name)
        subprocess.run([sys.executable, ROOT / "notebooks" / "make_site.py", "--program", PROGRAM, "-o", cls.site], check=True)
        cls.page = cls.enterClassContext(chromium.Page(WIDE, 1000))

    def open(self, place):
        self.page.open(self.site / place, drawn="true")
        self.assertEqual(self.page.errors, [])

    def pages(self):
        return sorted(path.relative_to(self.site) for path in self.site.rglob("*.html"))

    def test_nothing_is_clipped_in_a_window_or_on_a_phone(self):
        for width in (WIDE, PHONE):
            self.page.size(width, 1000)
            for place in self.pages():
                with self.subTest(page=place, width=width):
                    self.open(place)
                    self.assertEqual(self.page.run(CLIPPED), [])
                    self.assertEqual(self.page.run(BROKEN_IMAGES), [])
        self.page.size(WIDE, 1000)

    def test_the_front_page_and_the_guide_show_all_of_their_blocks_and_tables(self):
        self.page.size(WIDE, 1000)
        guide = [place for place in self.pages() if place.match("notebooks/guide/*.html")]
        self.assertGreater(len(guide), 10)
        for place in [pathlib.Path("index.html"), *guide]:
            with self.subTest(page=place):
                self.open(place)
                self.assertEqual(self.page.run(SCROLLED), [])

    def test_the_menu_of_a_phone_opens(self):
        self.page.size(PHONE, 1000)
        self.open("index.html")
        shown = "document.querySelector('nav .pages').offsetHeight > 0"
        self.assertFalse(self.page.run(shown))
        self.assertTrue(self.page.run(f"document.querySelector('nav label').click(), {shown}"))
        self.page.size(WIDE, 1000)

    def test_code_is_coloured(self):
        self.open("index.html")
        colours = "new Set([...document.querySelectorAll('pre span')].map(span => getComputedStyle(span).color)).size"
        self.assertGreater(self.page.run(colours), 2)

    def test_the_search_finds_pages_and_their_links_lead_to_them(self):
        found = "document.querySelectorAll('#found article').length"
        self.open("search.html?q=frontier")
        self.assertGreater(self.page.run(found), 3)
        links = self.page.run("[...document.querySelectorAll('#found a')].map(link => link.href)")
        for link in links:
            path = pathlib.Path(link.removeprefix("file://").split("#")[0])
            self.assertTrue((path / "index.html").exists() if path.is_dir() else path.exists(), link)
        self.open("search.html?q=nosuchword")
        self.assertEqual(self.page.run(found), 0)

    def test_the_figures_are_those_of_the_notebooks(self):
        self.open("figures.html")
        self.assertGreaterEqual(self.page.run("document.querySelectorAll('main img').length"), 7)


if __name__ == "__main__":
    unittest.main()
