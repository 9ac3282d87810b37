"""The picture of notebook 14: Netron's drawing of its first model, as Chromium shows it.

    python -m tests.netron_picture

writes it again. It needs the package netron, selenium, and Chromium.
"""

from __future__ import annotations

import base64
import io
import tempfile
from pathlib import Path

from PIL import Image, ImageChops
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

import minitorch as mt
from minitorch import nn
from minitorch_course.conditions import settings, version_of
from minitorch_course.libraries.records import FOLDER
from tests.recorded_functions import write
from tests.support.browser import CHROMIUM, DRIVER, find

ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--hide-scrollbars",
    "--window-size=420,900",
    "--force-device-scale-factor=2",
)
MARGIN = 10  # pixels around the drawing


def screenshot(address: str) -> Image.Image:
    """Netron's page once its drawing is there, without its buttons."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(find(CHROMIUM))
    for each in ARGUMENTS:
        options.add_argument(f"--{each}")
    with webdriver.Chrome(options, webdriver.ChromeService(find(DRIVER))) as browser:
        browser.get(address)
        wait = WebDriverWait(browser, 30)
        wait.until(lambda found: found.find_element(By.XPATH, "//button[text()='Accept']")).click()
        wait.until(lambda found: found.find_elements(By.CSS_SELECTOR, "#canvas .node"))
        # The brackets around shapes are of a Chinese font, which few machines have.
        browser.execute_script(
            "document.querySelectorAll('#toolbar, .toolbar, #menu-button').forEach(each => each.remove());"
            "document.querySelectorAll('#canvas tspan').forEach(each => {"
            "  each.textContent = each.textContent.replace('\\u3008', ' (').replace('\\u3009', ')'); });"
        )
        return Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")


def main() -> None:
    """Write the record."""
    import netron  # all files of tests are imported for their examples

    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10), nn.Softmax(1)).eval()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.onnx"
        mt.export.onnx(
            model, mt.ones(4, 8, 8), path=path, input_names=["images"], dynamic_axes={"images": {0: "batch"}}
        )
        host, port = netron.start(str(path), browse=False)
        whole = screenshot(f"http://{host}:{port}")
        netron.stop()
    left, top, right, bottom = ImageChops.difference(
        whole, Image.new("RGB", whole.size, whole.getpixel((0, 0)))
    ).getbbox()
    cut = whole.crop((left - MARGIN, top - MARGIN, right + MARGIN, bottom + MARGIN)).quantize(64)
    packed = io.BytesIO()
    cut.save(packed, "png", optimize=True)
    where = f"netron {version_of('netron')}, {settings(threads=None, fresh=False).machine}"
    png = base64.b64encode(packed.getvalue()).decode()
    write({"command": "python -m tests.netron_picture", "where": where, "png": png}, FOLDER / "netron.json")


if __name__ == "__main__":
    main()
