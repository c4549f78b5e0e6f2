"""Draws the screenshots in docs/images again: ``python -m tests.refresh_images`` with Chromium."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from syncproof import cli

IMAGES = Path(__file__).parents[1] / "docs" / "images"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SHOTS = {
    "violation": (["sp", "--fabric", "cm384,store_atomicity=128", "--routing", "balanced"], 970),
    "proof": (["sp"], 830),
}
"""By name: what is checked, and how many pixels of its page are shown."""


def main() -> None:
    """Write one PNG for each shot."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        program = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        for name, (command, height) in SHOTS.items():
            file = Path(folder) / f"{name}.html"
            cli.run([*command, "-q", "--html", str(file)])
            page = browser.new_page(
                viewport={"width": 1180, "height": height}, device_scale_factor=1.0
            )
            page.goto(file.as_uri())
            page.screenshot(path=IMAGES / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
