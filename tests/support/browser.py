"""A headless Chromium and a JupyterLab of one's own, for tests of what a notebook shows.

Both start with nothing of the user's: folders of their own, a free port, no password, and no way out: every name but
this machine's is unknown to the browser, and what it asks for is written down.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

from selenium import webdriver
from selenium.common.exceptions import TimeoutException, WebDriverException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DRIVER = ("chromedriver", "chromium.chromedriver")
SECONDS = 120  # for whatever is waited for; the usual is one or two, and ten times that on a busy machine
TIMES = 4  # a notebook is loaded, before its page is given up
HERE = ("127.0.0.1", "localhost")


def find(names: tuple[str, ...]) -> str | None:
    """The path of the first program that is there."""
    return next(filter(None, map(shutil.which, names)), None)


def missing() -> str:
    """Why there can be no browser here; empty if there can."""
    wanted = {"Chromium": CHROMIUM, "its driver (ChromeDriver)": DRIVER}
    absent = [name for name, names in wanted.items() if find(names) is None]
    install = "on Debian: apt-get install chromium chromium-driver"
    return f"{' and '.join(absent)} not found; {install}" if absent else ""


class Browser:
    """A headless Chromium.

    Attributes:
        driver: Selenium's.
        requests: the addresses that were asked for so far, in order.
        errors: what the console shows as errors so far.
    """

    def __init__(self, folder: Path, width: int = 1280, height: int = 1000) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = str(find(CHROMIUM))
        for argument in (
            "--headless=new",
            "--no-sandbox",  # which root may not have
            "--disable-dev-shm-usage",  # small in containers
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--force-color-profile=srgb",
            f"--host-resolver-rules=MAP * ~NOTFOUND, {', '.join(f'EXCLUDE {name}' for name in HERE)}",
            f"--window-size={width},{height}",
            f"--user-data-dir={folder}",
        ):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options, webdriver.ChromeService(find(DRIVER)))
        self._asked: list[str] = []
        self._errors: list[str] = []

    def close(self) -> None:
        """End it."""
        self.driver.quit()

    @property
    def requests(self) -> list[str]:
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self._asked.append(message["params"]["request"]["url"])
            elif message["method"] == "Network.webSocketCreated":
                self._asked.append(message["params"]["url"])
        return self._asked

    @property
    def requests_to_others(self) -> list[str]:
        """Those that leave the machine."""
        local = ("data", "blob", "about", "chrome", "chrome-extension", "chrome-untrusted")
        parts = [(url, urlsplit(url)) for url in self.requests]
        return [url for url, part in parts if part.scheme not in local and part.hostname not in HERE]

    @property
    def errors(self) -> list[str]:
        self._errors += [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        return self._errors

    def forget(self, requests: list[str], errors: list[str]) -> None:
        """Go on as if nothing but these had happened."""
        self._asked, self._errors = requests, errors

    def wait(self, condition: Any, what: str, seconds: float = SECONDS) -> Any:
        """Wait until a function gives something true, and return that."""

        def quiet(_: Any) -> Any:
            try:
                return condition()
            except WebDriverException:  # the page is being changed
                return None

        return WebDriverWait(self.driver, seconds, poll_frequency=0.1).until(quiet, f"waited in vain for {what}")

    def all(self, selector: str) -> list[Any]:
        """The elements that a CSS selector finds."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> Any:
        """Wait for an element."""
        return self.wait(lambda: self.all(selector), selector)[0]

    def script(self, text: str, *arguments: Any) -> Any:
        """What a JavaScript function body returns."""
        return self.driver.execute_script(text, *arguments)

    def press(self, *keys: str, holding: str | None = None) -> None:
        """Press keys, one after another."""
        chain = ActionChains(self.driver)
        if holding:
            chain.key_down(holding)
        chain.send_keys(*keys)
        if holding:
            chain.key_up(holding)
        chain.perform()


class Lab:
    """A JupyterLab in a browser.

    Attributes:
        browser: it.
        address: the server's.
    """

    def __init__(self, browser: Browser, address: str) -> None:
        self.browser = browser
        self.address = address

    def open(self, name: str) -> None:
        """Open a notebook, and wait until its kernel is ready.

        The server is asked, as well as the page: on a busy machine the page may miss the message that the kernel is
        idle, and wait for another one. It is then loaded again, which finds the kernel that was started.
        """
        for again in range(TIMES):
            self.browser.driver.get(f"{self.address}lab/tree/{name}{'' if again else '?reset'}")
            self.browser.one(".jp-Notebook .jp-Cell")
            self.browser.wait(lambda: self._state_of(name) == "idle", f"the kernel of {name} to be idle")
            with suppress(TimeoutException):
                self.browser.wait(self._kernel_is_idle, "the page to notice", SECONDS / 4)
                return
        raise TimeoutException(f"{name} was loaded {TIMES} times, and never noticed that its kernel is idle")

    def _state_of(self, name: str) -> str:
        """What the server knows of the kernel of a notebook: empty if there is none yet."""
        with urlopen(f"{self.address}api/sessions", timeout=SECONDS) as answer:
            found = json.loads(answer.read())
        return next((each["kernel"]["execution_state"] for each in found if each["path"] == name), "")

    def _kernel_is_idle(self) -> bool:
        return bool(self.browser.all(".jp-Notebook-ExecutionIndicator[data-status='idle']"))  # without focus, too

    def cell(self, number: int) -> Any:
        """A cell of the open notebook, from 0."""
        return self.browser.wait(lambda: self.browser.all(".jp-Notebook .jp-Cell")[number], f"cell {number}")

    def run(self, number: int) -> Any:
        """Run a cell as people do, with Shift+Enter, and wait until it is done."""
        cell = self.cell(number)
        cell.find_element(By.CSS_SELECTOR, ".cm-content").click()
        self.browser.press(Keys.ENTER, holding=Keys.SHIFT)

        def done() -> bool:
            prompt = self.cell(number).find_element(By.CSS_SELECTOR, ".jp-InputPrompt").text
            return prompt.strip("[]: ").isdigit()

        self.browser.wait(done, f"cell {number} to be done")
        return self.cell(number)


@contextmanager
def lab_server(root: Path, private: Path, dark: bool = False) -> Iterator[str]:
    """A JupyterLab that serves one folder, without a password, and keeps everything else in another one."""
    folders = {
        name: private / name.lower()
        for name in (
            "JUPYTER_CONFIG_DIR",
            "JUPYTER_DATA_DIR",
            "JUPYTER_RUNTIME_DIR",
            "JUPYTERLAB_SETTINGS_DIR",
            "JUPYTERLAB_WORKSPACES_DIR",
            "IPYTHONDIR",
        )
    }
    for folder in folders.values():
        folder.mkdir(parents=True)
    labconfig = folders["JUPYTER_CONFIG_DIR"] / "labconfig"
    labconfig.mkdir()  # no question about news, which would be asked for outside
    page = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
    (labconfig / "page_config.json").write_text(json.dumps(page))
    if dark:
        settings = folders["JUPYTERLAB_SETTINGS_DIR"] / "@jupyterlab" / "apputils-extension"
        settings.mkdir(parents=True)
        (settings / "themes.jupyterlab-settings").write_text('{"theme": "JupyterLab Dark"}')
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--log-level=ERROR"),
        *("--ServerApp.ip=127.0.0.1", "--ServerApp.port=0", f"--ServerApp.root_dir={root}"),
        *("--IdentityProvider.token=", "--ServerApp.password="),
    ]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    log = private / "log.txt"
    with log.open("w") as written:
        server = subprocess.Popen(
            command,
            env={**environment, **{name: str(folder) for name, folder in folders.items()}, "JAX_PLATFORMS": "cpu"},
            stdout=written,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
    try:
        yield _address(server, folders["JUPYTER_RUNTIME_DIR"], log)
    finally:
        server.terminate()  # it ends its kernels
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _address(server: subprocess.Popen[bytes], runtime: Path, log: Path) -> str:
    """Wait until the server answers; what it says of itself is in a file."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and server.poll() is None:
        for file in runtime.glob("jpserver-*.json"):
            try:
                address = json.loads(file.read_text())["url"]
                with urlopen(f"{address}api/status", timeout=SECONDS):
                    return str(address)
            except (OSError, ValueError):  # not all of it is there yet
                pass
        time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()}")
