"""A notebook in JupyterLab in headless Chromium: pictures are seen, the slider works, nothing is asked of other hosts.

Skipped where there is no Chromium; with ``MINITORCH_REQUIRE=chromium`` that is a failure.
"""

from __future__ import annotations

import base64
import time

import nbformat
import pytest

pytest.importorskip("selenium", reason="the tests in a browser need selenium, of the extra 'dev'")

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

import minitorch as mt
from tests.support.browser import Browser, Lab, lab_server, missing
from tests.support.helpers import require

SETUP = """
import minitorch as mt
import minitorch.nn.functional as F

f = mt.jit(lambda x, w, b: (F.gelu(x @ w) * 1.0 + b).softmax(1).sum(0))
args = mt.ones(64, 32), mt.ones(32, 16), mt.ones(16)
"""
CELLS = (SETUP.strip(), "f.show(*args)", "f.stages(*args).explore()", "f.stages(*args).explore(fused=False)")
SHOW, EXPLORE = 1, 2
COURSE_CELLS = (
    "from minitorch import course",
    "guess = course.predict('How many kernels?')",
    "guess.answer(1)",
    "course.panel(lambda x, w: (x @ w).softmax(1), ('n', 'k'), ('k', 'm'), n=64, k=32, m=48)",
    "course.rounds([[(0, 1, 0, 'add')], [(1, 0, 0, 'copy')]], 2)",
)
PREDICT, ANSWER, PANEL, FRAMES = 1, 2, 3, 4
LARGE_CELLS = (
    """
import minitorch as mt
import minitorch.nn as nn
import minitorch.nn.functional as F

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        x = self.norm(x)
        x = x + F.scaled_dot_product_attention(x, x, x, is_causal=True)
        return x + self.down(F.gelu(self.up(x)))

model = nn.Sequential(nn.Embedding(9, 8), Block(8), Block(8), nn.Linear(8, 9))
optimiser = mt.optim.Adam(model.parameters(), lr=1e-3)

@mt.jit
def step(ids):
    loss = F.cross_entropy(model(ids).reshape(-1, 9), ids.reshape(-1))
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return loss
""".strip(),
    "step.explore(mt.tensor([[1, 2, 3, 4]] * 2))",
)
ROOT = ".minitorch-explore"
BOARD = ".minitorch-panel"
LAPTOP = 1366, 768


def notebook(*sources):
    cells = [nbformat.v4.new_code_cell(source, id=f"cell-{number}") for number, source in enumerate(sources)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def not_trusted():
    """A notebook that somebody else sends, with the outputs that it had there."""
    made = notebook("f.show(*args)")
    f = mt.jit(lambda x: x.softmax(1))
    bundle, metadata = f.show(mt.ones(4, 4))._repr_mimebundle_()
    output = nbformat.v4.new_output("execute_result", bundle_of_text(bundle), execution_count=1, metadata=metadata)
    made.cells[0].outputs, made.cells[0].execution_count = [output], 1
    return made


def bundle_of_text(bundle):
    """As files have it: bytes in base64."""
    return {
        kind: base64.b64encode(value).decode() if isinstance(value, bytes) else value for kind, value in bundle.items()
    }


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    require("chromium", missing())
    folder = tmp_path_factory.mktemp("browser")
    root = folder / "notebooks"
    root.mkdir()
    nbformat.write(notebook(*CELLS), root / "lesson.ipynb")
    nbformat.write(not_trusted(), root / "received.ipynb")
    nbformat.write(notebook(*COURSE_CELLS), root / "course.ipynb")
    nbformat.write(notebook(*LARGE_CELLS), root / "large.ipynb")
    browser = Browser(folder / "profile", *LAPTOP)
    try:
        with lab_server(root, folder / "lab") as address:
            yield Lab(browser, address)
    finally:
        browser.close()


@pytest.fixture(scope="module")
def lesson(lab):
    """The notebook with the pictures, its first three cells run; at the end nothing may have been asked of others."""
    lab.open("lesson.ipynb")
    for number in (0, SHOW, EXPLORE):
        lab.run(number)
    lab.browser.one(f"{ROOT} .node")
    return lab


@pytest.fixture
def widget(lesson):
    """The widget at its first position, seen as a whole."""
    move(lesson.browser, 0)
    lesson.browser.script(f"document.querySelector('{ROOT}').scrollIntoView({{block: 'center'}})")
    lesson.browser.one(f"{ROOT} button[title='show all of it']").click()
    return lesson.browser


def slider(browser):
    return browser.one(f"{ROOT} input[type=range]")


def move(browser, position):
    """Move the slider with the keyboard, as people may."""
    element = slider(browser)
    browser.script("arguments[0].focus()", element)
    browser.press(Keys.HOME, *[Keys.ARROW_RIGHT] * position)
    browser.wait(lambda: slider(browser).get_property("value") == str(position), "the slider to move")


def positions(browser):
    return int(slider(browser).get_attribute("max")) + 1


def classes(browser):
    """The class of every place, in order."""
    return browser.script(
        f"return [...document.querySelectorAll('{ROOT} .node')].map((node) => node.getAttribute('class'))"
    )


def places(browser):
    return browser.script(
        f"return [...document.querySelectorAll('{ROOT} .node')].map((node) => node.getAttribute('transform'))"
    )


def view_box(browser):
    return [float(number) for number in browser.one(f"{ROOT} svg").get_dom_attribute("viewBox").split()]


def panel(browser):
    return browser.one(f"{ROOT} .side").text


# --- with and without a browser --------------------------------------------------------------------------------


def test_without_the_tool_a_test_is_skipped_and_where_it_is_required_it_fails(monkeypatch):
    monkeypatch.setenv("MINITORCH_REQUIRE", "bubblewrap")
    require("chromium", "")
    with pytest.raises(pytest.skip.Exception, match="chromium: not found"):
        require("chromium", "not found")
    monkeypatch.setenv("MINITORCH_REQUIRE", "bubblewrap,chromium")
    with pytest.raises(pytest.fail.Exception, match=r"chromium: not found \(MINITORCH_REQUIRE names it\)"):
        require("chromium", "not found")


def test_what_is_missing_is_named_with_its_package(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert missing() == (
        "Chromium and its driver (ChromeDriver) not found; on Debian: apt-get install chromium chromium-driver"
    )


# --- pictures ------------------------------------------------------------------------------------------------


def test_show_is_a_picture_that_is_seen(lesson):
    image = lesson.browser.wait(
        lambda: lesson.cell(SHOW).find_element("css selector", ".jp-OutputArea-output img"), "the picture"
    )
    source = image.get_attribute("src")
    assert source.startswith("data:image/svg+xml")
    size = lesson.browser.script("return [arguments[0].naturalWidth, arguments[0].naturalHeight]", image)
    assert min(size) > 100 and image.size["width"] > 100 and image.size["height"] > 100
    assert image.size["width"] <= lesson.cell(SHOW).size["width"]


def test_explore_is_seen(widget):
    drawing = widget.one(f"{ROOT} svg")
    assert drawing.size["width"] > 300 and drawing.size["height"] > 300
    boxes = widget.script(
        f"return [...document.querySelectorAll('{ROOT} .node:not(.absent)')]"
        ".map((node) => node.getBoundingClientRect()).map(({width, height}) => [width, height])"
    )
    assert len(boxes) > 10 and all(width > 5 and height > 3 for width, height in boxes)


# --- the slider ----------------------------------------------------------------------------------------------


def test_moving_the_slider_changes_classes_and_no_place(widget):
    before, where = classes(widget), places(widget)
    assert "traced" in panel(widget)
    seen = {0: before}
    for position in range(1, positions(widget)):
        move(widget, position)
        seen[position] = classes(widget)
        assert places(widget) == where
    everything = " ".join(name for names in seen.values() for name in names).split()
    assert {"kept", "removed", "rewritten", "absent"} <= set(everything)
    assert all("removed" not in name and "rewritten" not in name for name in before)
    survivors = [place for place, name in enumerate(before) if "absent" not in name]
    assert len(survivors) > 10


def test_what_is_removed_has_another_outline_and_a_sign(widget):
    for position in range(1, positions(widget)):
        move(widget, position)
        if found := widget.all(f"{ROOT} .node.removed"):
            break
    outline = found[0].find_element("css selector", ".outline")
    assert outline.value_of_css_property("stroke-dasharray") != "none"
    assert outline.value_of_css_property("stroke") == "rgb(213, 94, 0)"
    assert found[0].find_element("css selector", ".badge").text == "−"
    assert "removed" in panel(widget)


def test_the_last_positions_are_kernels_with_their_loops(widget):
    assert widget.all(f"{ROOT} .kernel:not(.absent)") == []
    move(widget, positions(widget) - 1)
    (kernel,) = widget.all(f"{ROOT} .kernel.selected")
    assert kernel.size["width"] > 50
    source = widget.one(f"{ROOT} .side pre").text
    assert source.startswith("import numpy as np") and "for i0 in range(64):" in source


def test_a_click_on_a_frame_selects_its_kernel(widget):
    titles = [title.text for title in widget.all(f"{ROOT} .kernel text")]
    move(widget, positions(widget) - 1 - len(titles))
    assert "A frame is one kernel" in panel(widget) and not widget.all(f"{ROOT} .side pre")
    frame = widget.one(f"{ROOT} .kernel rect")
    width, height = frame.size["width"], frame.size["height"]
    ActionChains(widget.driver).move_to_element_with_offset(frame, 3 - width / 2, 3 - height / 2).click().perform()
    widget.one(f"{ROOT} .side pre")


# --- looking closer --------------------------------------------------------------------------------------------


def test_resting_on_a_node_shows_its_details(widget):
    node = next(
        node for node in widget.all(f"{ROOT} .node:not(.absent)") if node.text.startswith("reduce_sum") and node.size
    )
    ActionChains(widget.driver).move_to_element(node).perform()
    note = widget.wait(lambda: widget.one(f"{ROOT} .details").text, "details")
    for wanted in ("reduce_sum(", "shape: ", "dtype: float32", "FLOPs: ", "bytes: ", "line: In[1]:"):
        assert wanted in note
    ActionChains(widget.driver).move_to_element(widget.one(f"{ROOT} .side h4")).perform()
    assert not widget.one(f"{ROOT} .details").is_displayed()


def test_zoom_and_pan_with_mouse_buttons_and_keys(widget):
    drawing = widget.one(f"{ROOT} svg")
    whole = view_box(widget)
    widget.one(f"{ROOT} button[title='zoom in']").click()
    assert view_box(widget)[2] < whole[2]
    widget.one(f"{ROOT} button[title='zoom out']").click()
    assert view_box(widget) == pytest.approx(whole, abs=1e-3)
    ActionChains(widget.driver).move_to_element(drawing).click_and_hold().move_by_offset(40, 25).release().perform()
    moved = view_box(widget)
    assert moved[0] < whole[0] and moved[1] < whole[1] and moved[2:] == pytest.approx(whole[2:])
    widget.script("arguments[0].focus()", drawing)
    widget.press("+")
    assert view_box(widget)[2] < moved[2]
    before = view_box(widget)
    widget.press(Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    assert view_box(widget)[0] > before[0] and view_box(widget)[1] > before[1]
    widget.press("n")
    assert widget.one(f"{ROOT} .details").is_displayed()
    widget.press(Keys.ESCAPE, "0")
    assert view_box(widget) == pytest.approx(whole, abs=1e-3)


def test_the_wheel_zooms_only_what_has_been_clicked_on(widget):
    drawing = widget.one(f"{ROOT} svg")
    wheel = (
        "arguments[0].dispatchEvent(new WheelEvent('wheel', {deltaY: -100, ctrlKey: arguments[1], cancelable: true}))"
    )
    widget.script("document.activeElement.blur()")
    whole = view_box(widget)
    assert widget.script(f"return {wheel}", drawing, False) is True  # left to the page
    assert view_box(widget) == whole
    assert widget.script(f"return {wheel}", drawing, True) is False
    assert view_box(widget)[2] < whole[2]


def test_keys_for_the_drawing_are_not_jupyterlabs(lesson, widget):
    """In JupyterLab's command mode ``d d`` deletes a cell, and ``0 0`` offers to restart the kernel."""
    cells = len(lesson.browser.all(".jp-Notebook .jp-Cell"))
    widget.script("arguments[0].focus()", widget.one(f"{ROOT} svg"))
    widget.press("d", "d", "0", "0", "a", "b")
    time.sleep(0.3)
    assert len(lesson.browser.all(".jp-Notebook .jp-Cell")) == cells
    assert lesson.browser.all(".jp-Dialog") == []


def test_without_kernels_there_are_none(lesson):
    cell = lesson.run(EXPLORE + 1)
    drawing = lesson.browser.wait(lambda: cell.find_element("css selector", f"{ROOT} svg"), "the second widget")
    assert drawing.find_elements("css selector", ".kernel") == []


# --- large programs -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large_lab(lab):
    """A training step of some thousand operations, explored."""
    lab.open("large.ipynb")
    for number in (0, 1):
        lab.run(number)
    lab.browser.one(f"{ROOT} .box")
    return lab.browser


@pytest.fixture
def large(large_lab):
    """All boxes closed, all of it in view."""
    large_lab.script(f"document.querySelector('{ROOT}').scrollIntoView()")
    while opened := large_lab.all(f"{ROOT} .box.open .bar"):
        click(large_lab, opened[0])
    move(large_lab, 0)
    large_lab.one(f"{ROOT} button[title='show all of it']").click()
    return large_lab


def click(browser, element):
    """Click in the middle of an SVG element, wherever the window shows it."""
    browser.script("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", element)


def boxes(browser):
    """The closed boxes, by the first line of their details."""
    found = browser.all(f"{ROOT} .box:not(.open):not(.absent)")
    return {each.get_dom_attribute("aria-label").splitlines()[0]: each for each in found}


def find(browser, text):
    """Search, as with the keyboard, and return what is said of the hits."""
    field = browser.one(f"{ROOT} input[type=search]")
    field.clear()
    field.send_keys(text, Keys.ENTER)
    return browser.one(f"{ROOT} .count").text


def middle(browser, element):
    """The middle of an element in the window of the drawing, as shares of its width and height."""
    return browser.script(
        "const [at, frame] = [arguments[0], arguments[1]].map((each) => each.getBoundingClientRect());"
        "return [(at.x + at.width / 2 - frame.x) / frame.width, (at.y + at.height / 2 - frame.y) / frame.height]",
        element,
        browser.one(f"{ROOT} .window svg"),
    )


def test_a_large_program_opens_with_the_whole_in_view(large):
    assert {"Sequential", "backward pass", "optimiser.step()"} <= set(boxes(large))
    assert not large.one(f"{ROOT} .overview").is_displayed(), "all of it is seen already"
    assert len(large.all(f"{ROOT} .window svg *")) < 200
    for each in boxes(large).values():
        assert all(0 < share < 1 for share in middle(large, each))


def test_a_box_opens_and_closes(large):
    closed = len(large.all(f"{ROOT} .window svg *"))
    click(large, boxes(large)["Sequential"])
    assert "1 · Block" in boxes(large) and "Sequential" not in boxes(large)
    click(large, boxes(large)["1 · Block"])
    assert "1.norm · LayerNorm" in boxes(large)
    assert large.one(f"{ROOT} .overview").is_displayed()
    assert len(large.all(f"{ROOT} .window svg *")) < 1500
    assert large.all(f"{ROOT} .box.open[aria-expanded=true]") and covered(large) == []
    outer, _ = large.all(f"{ROOT} .box.open .bar")
    click(large, outer)
    assert len(large.all(f"{ROOT} .window svg *")) == closed and "1 · Block" not in boxes(large)


def covered(browser):
    """Nodes and closed boxes that lie over each other."""
    return browser.script(
        f"""
        const shown = "{ROOT} :is(.node, .port, .box:not(.open)):not(.absent) > .outline";
        const parts = [...document.querySelectorAll(shown)]
          .map((each) => [each.parentNode.getAttribute("aria-label"), each.getBoundingClientRect()]);
        return parts.flatMap(([one, a], at) => parts.slice(at + 1).flatMap(([other, b]) =>
          Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 &&
          Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2 ? [`${{one}} over ${{other}}`] : []));
        """
    )


def test_a_search_opens_the_boxes_on_the_way(large):
    assert find(large, "no such thing") == "not found"
    first = find(large, "erf(")  # of gelu, in each of the blocks
    assert first.startswith("1 of ")
    chosen = large.one(f"{ROOT} .node.chosen")
    assert "erf" in chosen.get_dom_attribute("aria-label") and all(0 < share < 1 for share in middle(large, chosen))
    assert len(large.all(f"{ROOT} .box.open")) >= 2
    assert "line: In[1]:13" in large.one(f"{ROOT} .details").text
    large.one(f"{ROOT} input[type=search]").send_keys(Keys.ENTER)
    assert large.one(f"{ROOT} .count").text.startswith("2 of ")
    assert find(large, "In[1]:11").startswith("1 of "), "a line"


def test_the_slider_says_what_changes_in_closed_boxes(large):
    seen = []
    for position in range(1, 5):
        move(large, position)
        badges = [badge.text for badge in large.all(f"{ROOT} .box:not(.absent) .badge")]
        seen += [badge for badge in badges if badge]
        lines = large.all(f"{ROOT} .side li button")
        if lines:
            break
    assert any(sign in badge for badge in seen for sign in "+−~")
    lines[0].click()
    assert large.one(f"{ROOT} .node.chosen") and large.all(f"{ROOT} .box.open"), "a line of the panel leads to its node"


def test_a_selected_kernel_dims_what_is_not_in_it(large):
    move(large, positions(large) - 1)
    assert large.one(f"{ROOT} .side pre").text.startswith("import numpy as np")
    dimmed = large.all(f"{ROOT} .box.aside, {ROOT} .node.aside")
    assert 0 < len(dimmed) < len(large.all(f"{ROOT} .box:not(.absent), {ROOT} .node:not(.absent)"))


def test_boxes_are_reached_with_the_keyboard(large):
    large.script("arguments[0].focus()", large.one(f"{ROOT} .window svg"))
    for _ in range(20):
        large.press("n")
        if large.all(f"{ROOT} .box.chosen"):
            break
    name = large.one(f"{ROOT} .box.chosen").get_dom_attribute("aria-label").splitlines()[0]
    large.press(Keys.ENTER)
    large.wait(lambda: name not in boxes(large), "the box to open")
    assert large.one(f"{ROOT} .box.open").get_dom_attribute("aria-expanded") == "true"
    assert large.requests_to_others == [] and large.errors == []


# --- predictions and panels -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def course_lab(lab):
    """The notebook with a prediction and a panel."""
    lab.open("course.ipynb")
    for number in (0, PREDICT):
        lab.run(number)
    return lab


@pytest.fixture(scope="module")
def board(course_lab):
    """The panel, as it is at first."""
    course_lab.run(PANEL)
    settled(course_lab.browser)
    course_lab.browser.script(f"document.querySelector('{BOARD}').scrollIntoView()")
    return course_lab.browser


def settled(browser):
    """Wait until the panel has shown what follows from its controls, and return its table as text."""
    browser.wait(lambda: browser.one(f"{BOARD} .status").text != "working …", "the panel to be ready")
    return "\n".join(each.text for each in browser.all(f"{BOARD} table"))


def control(browser, kind, text):
    """The input of a control, by its label; or a button, by its text or its title."""
    found = [
        each for each in browser.all(f"{BOARD} .widget-{kind}") if text in (each.text, each.get_attribute("title"))
    ]
    return found[0].find_element("css selector", "input") if kind in ("checkbox", "text") else found[0]


def overlapping(browser, selector):
    """Pairs of visible parts that cover each other, and parts that stick out."""
    return browser.script(
        """
        const root = document.querySelector(arguments[0]);
        const whole = root.getBoundingClientRect();
        const parts = [...root.querySelectorAll("input, select, button, label, th, td, p, .status, .view")]
          .map((part) => [part, part.getBoundingClientRect()])
          .filter(([part, box]) => box.width && box.height && part.textContent + part.tagName);
        const named = (part) => `${part.tagName}:${part.textContent || part.title || part.value}`.slice(0, 60);
        const found = [];
        parts.forEach(([one, a], number) => {
          if (a.left < whole.left - 1 || a.right > whole.right + 1 || a.bottom > whole.bottom + 1)
            found.push(`${named(one)} sticks out`);
          if (one.tagName === "BUTTON" && one.scrollWidth > one.clientWidth + 1) found.push(`${named(one)} is cut`);
          for (const [other, b] of parts.slice(number + 1)) {
            if (one.contains(other) || other.contains(one)) continue;
            const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
            const along = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
            if (across > 1.5 && along > 1.5) found.push(`${named(one)} over ${named(other)}`);
          }
        });
        return found;
        """,
        selector,
    )


def test_a_guess_is_set_beside_the_answer(course_lab):
    field = course_lab.cell(PREDICT).find_element("css selector", ".widget-text input")
    field.send_keys("3", Keys.ENTER)
    said = course_lab.cell(PREDICT)
    course_lab.browser.wait(lambda: "Your guess: 3." in said.text, "the guess to be kept")
    assert "How many kernels? 1. You guessed 3." in course_lab.run(ANSWER).text


def test_nothing_of_a_panel_overlaps_at_the_width_of_a_laptop(board):
    assert overlapping(board, BOARD) == []
    assert board.one(BOARD).size["height"] <= LAPTOP[1] - 200, "it is seen as a whole"
    board.script(f"document.querySelector('{BOARD} .view').style.marginTop = '-90px'")
    assert overlapping(board, BOARD), "the test can fail"
    board.script(f"document.querySelector('{BOARD} .view').style.marginTop = ''")


def test_a_panel_follows_its_controls(board):
    before = settled(board)
    assert "as set" not in before
    control(board, "checkbox", "shared rows").click()
    board.wait(lambda: "as set" in settled(board), "a third column")
    control(board, "checkbox", "shared rows").click()
    board.wait(lambda: "as set" not in settled(board), "two columns")
    picture = board.one(f"{BOARD} .view").get_attribute("innerHTML")
    control(board, "button", "twice n").click()
    board.wait(lambda: "f32[128,32]" in board.one(f"{BOARD} .view").get_attribute("innerHTML"), "the larger picture")
    assert settled(board) != before and "f32[64,32]" in picture
    control(board, "toggle-button", "loops").click()
    board.wait(lambda: "import numpy as np" in board.one(f"{BOARD} .view").text, "the loops")
    assert overlapping(board, BOARD) == []


def test_frames_follow_their_slider(board, course_lab):
    cell = course_lab.run(FRAMES)
    handle = board.wait(lambda: cell.find_element("css selector", ".noUi-handle"), "the slider")
    assert "step 1: add" in cell.text and "all steps side by side" in cell.text
    handle.send_keys(Keys.ARROW_RIGHT)
    board.wait(lambda: "step 2: copy" in cell.text and "step 1" not in cell.text, "the next frame")


def test_a_panel_is_used_with_the_keyboard(lab, board):
    """Also in command mode, whose keys are JupyterLab's."""
    cells = len(board.all(".jp-Notebook .jp-Cell"))
    field = control(board, "text", "k")
    board.script("arguments[0].select()", field)
    field.send_keys("0", Keys.ENTER)
    board.wait(lambda: "k is '0': a size is a whole number" in board.one(f"{BOARD} .status").text, "the refusal")
    board.script("arguments[0].select()", field)
    field.send_keys("16", Keys.ENTER)
    board.wait(lambda: board.one(f"{BOARD} .status").text == "ready", "the panel to be ready")
    board.press(Keys.TAB)
    assert board.script("return document.activeElement.title") == "half of k"
    box = control(board, "checkbox", "algebra")
    board.script("arguments[0].focus()", box)
    board.press(Keys.SPACE)
    board.wait(lambda: "as set" in settled(board), "a third column")
    board.press(Keys.SPACE)
    board.wait(lambda: "as set" not in settled(board), "two columns")
    assert len(board.all(".jp-Notebook .jp-Cell")) == cells and board.all(".jp-Dialog") == []
    assert board.requests_to_others == [] and board.errors == []


# --- what leaves the machine -------------------------------------------------------------------------------------


def test_no_error_and_no_request_to_another_host(lesson):
    assert len(lesson.browser.requests) > 20  # the log works
    assert lesson.browser.requests_to_others == []
    assert lesson.browser.errors == []


def test_the_browser_does_tell_of_requests_and_errors(lesson):
    """The test above can fail."""
    browser = lesson.browser
    requests, errors = list(browser.requests), list(browser.errors)
    browser.script("fetch('http://example.org/picture.png').catch(() => 0); console.error('something is wrong')")
    browser.wait(lambda: browser.requests_to_others, "the request in the log")
    assert browser.requests_to_others == ["http://example.org/picture.png"]
    browser.wait(lambda: any("something is wrong" in each for each in browser.errors), "the error in the log")
    browser.forget(requests, errors)


def test_an_untrusted_notebook_shows_the_picture_as_png(lab):
    lab.open("received.ipynb")  # a server that is told to end while a kernel starts waits for it in vain
    image = lab.browser.one(".jp-OutputArea-output img")
    assert image.get_attribute("src").startswith("data:image/png")
    assert min(lab.browser.script("return [arguments[0].naturalWidth, arguments[0].naturalHeight]", image)) > 100
