// The widget of `f.stages(*args).explore()`: a slider over what a program becomes on its way to machine code.
//
// Everything is decided in Python (minitorch/inspect/explorer.py): where each node lies, what stands there at each
// position of the slider, how it is coloured. This module draws all places and edges once; moving the slider changes
// classes and texts, never coordinates, so what survives a pass stays where it was. It asks nothing of any network.

const SVG = "http://www.w3.org/2000/svg";
const SHAPES = new Set(["svg", "g", "path", "rect", "text", "defs", "marker"]);
const FOCUSABLE = new Set(["svg", "input", "button", "pre"]);

const ZOOM = 1.25; // of one turn of the wheel, or one press of a button
const PAN = 60; // pixels, of one press of an arrow key
const READABLE = 0.75; // pixels to a unit: at fewer, letters are too small to read
const FEWEST_UNITS = 0.1; // to a pixel: no closer than this
const MOST_UNITS = 50; // to a pixel: no further than this
const DRAG = 4; // pixels: what moves less is a click

const BADGES = { added: "+", removed: "−", rewritten: "~" };

/** An element with attributes and children; `text` is what it says. */
function make(tag, { text, ...attributes } = {}, children = []) {
  const element = SHAPES.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  // Without it JupyterLab takes the keys that are meant for the element: d, d would delete the cell.
  if (FOCUSABLE.has(tag)) element.setAttribute("data-lm-suppress-shortcuts", "true");
  if (text !== undefined) element.textContent = text;
  element.append(...children);
  return element;
}

const clamp = (value, least, most) => Math.min(Math.max(value, least), most);

// What is seen -------------------------------------------------------------------------------------------------

/** The part of the drawing that is seen: zooming and panning change the viewBox, and nothing else. */
class View {
  constructor(svg, [width, height]) {
    this.svg = svg;
    this.size = { width, height };
    this.box = { x: 0, y: 0, width, height };
    this.touched = false; // by the reader: then a window of another width is no reason to fit again
  }

  show() {
    const { x, y, width, height } = this.box;
    this.svg.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
  }

  /** Units of the drawing to a pixel. */
  get units() {
    return this.box.width / this.svg.clientWidth;
  }

  /** All of the drawing; or, if it has to stay readable, the upper part of a large one. */
  fit(readable) {
    const { clientWidth, clientHeight } = this.svg;
    if (!clientWidth || !clientHeight) return; // not on the page yet
    const whole = Math.min(1, clientWidth / this.size.width, clientHeight / this.size.height);
    const scale = readable ? Math.max(whole, READABLE) : whole;
    const [width, height] = [clientWidth / scale, clientHeight / scale];
    const y = height < this.size.height ? 0 : (this.size.height - height) / 2;
    this.box = { x: (this.size.width - width) / 2, y, width, height };
    this.touched = !readable;
    this.show();
  }

  /** Closer or further; a point of the window stays where it is. */
  zoom(factor, px = this.svg.clientWidth / 2, py = this.svg.clientHeight / 2) {
    const before = this.units;
    const after = clamp(before / factor, FEWEST_UNITS, MOST_UNITS);
    this.box.x += px * (before - after);
    this.box.y += py * (before - after);
    this.box.width *= after / before;
    this.box.height *= after / before;
    this.touched = true;
    this.show();
  }

  /** Along, by so many pixels. */
  pan(dx, dy) {
    const { units } = this;
    this.box.x += dx * units;
    this.box.y += dy * units;
    this.touched = true;
    this.show();
  }

  /** Whether all of a box around a point is seen. */
  sees({ x, y, w, h }) {
    const { box } = this;
    const across = x - w / 2 >= box.x && x + w / 2 <= box.x + box.width;
    return across && y - h / 2 >= box.y && y + h / 2 <= box.y + box.height;
  }

  /** So far that such a box is seen, or its upper left corner; not at all if it is already. */
  reveal(target) {
    if (this.sees(target)) return;
    const { x, y, w, h } = target;
    const { box } = this;
    box.x = w > box.width ? x - w / 2 : x - box.width / 2;
    box.y = h > box.height ? y - h / 2 : y - box.height / 2;
    this.show();
  }
}

// What is drawn ------------------------------------------------------------------------------------------------

/** Everything that is somewhere at some position; returns the elements to be changed, by id. */
function draw(data, canvas) {
  const kernels = data.kernels.map(({ x, y, w, h, colour, title }) => {
    const group = make("g", { class: "kernel", transform: `translate(${x} ${y})`, style: `--kind: ${colour}` }, [
      make("rect", { x: -w / 2, y: -h / 2, width: w, height: h, rx: 6 }),
      make("text", { x: 6 - w / 2, y: 14 - h / 2, text: title }),
    ]);
    return group;
  });
  const edges = data.edges.map(({ path }) => make("path", { class: "edge", d: path }));
  const places = data.places.map(({ x, y, w, h }) => {
    const parts = {
      outline: make("path", { class: "outline" }),
      family: make("rect", { class: "family", x: 2 - w / 2, y: 3 - h / 2, width: 4, height: h - 6 }),
      label: make("text", { class: "label", x: 3, y: -2 }),
      caption: make("text", { class: "caption", x: 3, y: 11 }),
      badge: make("text", { class: "badge", x: w / 2 + 7, y: 7 - h / 2 }),
    };
    const group = make("g", { transform: `translate(${x} ${y})` }, Object.values(parts));
    return { group, ...parts };
  });
  canvas.append(...kernels, ...edges, ...places.map(({ group }) => group));
  return { kernels, edges, places };
}

/** What stands at one position of the slider. */
function update(data, drawn, { marks, edges, kernels, selected }) {
  drawn.places.forEach(({ group, outline, family, label, caption, badge }, place) => {
    const mark = data.marks[marks[place]];
    group.setAttribute("class", mark ? `node ${mark.change}` : "node absent");
    group.classList.toggle("aside", Boolean(mark) && selected !== null && mark.kernel !== selected);
    if (!mark) return;
    outline.setAttribute("d", mark.outline);
    family.style.fill = mark.colour || "none";
    label.textContent = mark.label;
    caption.textContent = mark.caption;
    badge.textContent = BADGES[mark.change] ?? "";
  });
  drawn.edges.forEach((path, edge) => path.setAttribute("class", `edge ${edges[edge] ?? "absent"}`));
  drawn.kernels.forEach((group, kernel) => {
    group.setAttribute("class", kernels ? "kernel" : "kernel absent");
    group.classList.toggle("selected", kernel === selected);
    group.classList.toggle("aside", selected !== null && kernel !== selected);
  });
}

/** The panel at the side: what the step is, what it did, and the source of a kernel; a click on a line goes there. */
function describe(panel, { title, doc, facts, lines, source }, go) {
  panel.replaceChildren(make("h4", { text: title }), make("p", { text: doc }));
  if (facts.length) panel.append(make("p", { class: "facts", text: facts.join(" · ") }));
  if (lines.length) {
    const items = lines.map((line) => {
      const button = make("button", { type: "button", text: line.text });
      button.addEventListener("click", () => go(line));
      return make("li", { class: line.change }, [button]);
    });
    panel.append(make("ul", {}, items));
  }
  if (source) panel.append(make("pre", { text: source, tabindex: 0, "aria-label": "source of the kernel" }));
}

// The widget ---------------------------------------------------------------------------------------------------

/** What outlines and colours mean. */
function legend({ legend: changes, families }) {
  const swatches = [
    ...changes.map(({ change, text }) => [make("i", { class: `swatch ${change}`, text: BADGES[change] }), text]),
    ...families.map(({ colour, text }) => [make("i", { class: "family", style: `background: ${colour}` }), text]),
  ];
  const items = swatches.map((parts) => make("span", {}, parts));
  return make("div", { class: "legend" }, items);
}

function render({ model, el }) {
  const data = model.get("data");
  const last = data.positions.length - 1;

  const slider = make("input", { type: "range", min: 0, max: last, step: 1, "aria-label": "pass" });
  const heading = make("output", { "aria-live": "polite" });
  const buttons = [
    ["−", "zoom out", () => view.zoom(1 / ZOOM)],
    ["+", "zoom in", () => view.zoom(ZOOM)],
    ["fit", "show all of it", () => view.fit(false)],
  ].map(([text, title, action]) => {
    const button = make("button", { type: "button", title, "aria-label": title, text });
    button.addEventListener("click", action);
    return button;
  });
  const svg = make("svg", { tabindex: 0, role: "group", "aria-label": data.help, "aria-roledescription": "graph" });
  const arrow = { id: `arrow-${model.model_id ?? "0"}`, viewBox: "0 0 8 8", refX: 7, refY: 4 };
  const size = { markerWidth: 7, markerHeight: 7, orient: "auto", markerUnits: "userSpaceOnUse" };
  svg.append(make("defs", {}, [make("marker", { ...arrow, ...size }, [make("path", { d: "M0 0L8 4L0 8z" })])]));
  svg.style.setProperty("--arrow", `url(#${arrow.id})`);
  const note = make("div", { class: "details", role: "status", hidden: "" });
  const panel = make("div", { class: "side" });
  const root = make("div", { class: "minitorch-explore" }, [
    make("div", { class: "bar" }, [slider, heading, make("span", { class: "buttons" }, buttons)]),
    make("div", { class: "stage" }, [make("div", { class: "window" }, [svg, note]), panel]),
    legend(data),
  ]);

  const view = new View(svg, data.size);
  const drawn = draw(data, svg);
  let position = null; // what is shown, of data.positions
  let chosen = -1; // the place whose note is open

  /** The details of what stands in a place; none for -1. */
  function choose(place) {
    drawn.places[chosen]?.group.classList.remove("chosen");
    chosen = place;
    const mark = data.marks[position.marks[place]];
    note.hidden = !mark;
    if (!mark) return;
    drawn.places[place].group.classList.add("chosen");
    note.textContent = mark.title;
    const at = drawn.places[place].group.getBoundingClientRect();
    const frame = svg.getBoundingClientRect();
    const above = at.bottom - frame.top + note.offsetHeight + 6 > frame.height;
    const top = above ? at.top - frame.top - note.offsetHeight - 6 : at.bottom - frame.top + 6;
    note.style.left = `${clamp(at.left - frame.left, 4, Math.max(4, frame.width - note.offsetWidth - 4))}px`;
    note.style.top = `${clamp(top, 4, Math.max(4, frame.height - note.offsetHeight - 4))}px`;
  }

  function show() {
    const number = clamp(model.get("position"), 0, last);
    position = data.positions[number];
    slider.value = number;
    slider.setAttribute("aria-valuetext", position.title);
    heading.textContent = `${number} of ${last}: ${position.title} (${position.summary})`;
    update(data, drawn, position);
    describe(panel, position, ({ place, kernel }) => (place === null ? open(kernel) : pointAt(place)));
    panel.scrollTop = 0;
    choose(-1);
    if (position.selected !== null) view.reveal(data.kernels[position.selected]);
    const changed = position.lines.map(({ place }) => data.places[place]).filter(Boolean);
    if (changed.length && !changed.some((box) => view.sees(box))) view.reveal(changed[0]);
  }

  function go(number) {
    model.set("position", clamp(number, 0, last));
    model.save_changes();
  }

  /** Brings a place into view, with its details. */
  function pointAt(place) {
    view.reveal(data.places[place]);
    choose(place);
  }

  /** The position of a kernel. */
  function open(kernel) {
    go(data.kernels[kernel].position);
  }

  /** The next place, or the one before, in which something stands. */
  function step(by) {
    const there = position.marks.flatMap((mark, place) => (mark === null ? [] : [place]));
    const at = there.indexOf(chosen);
    pointAt(there[at < 0 ? 0 : (at + by + there.length) % there.length]);
  }

  const KEYS = {
    ArrowLeft: () => view.pan(-PAN, 0),
    ArrowRight: () => view.pan(PAN, 0),
    ArrowUp: () => view.pan(0, -PAN),
    ArrowDown: () => view.pan(0, PAN),
    "+": () => view.zoom(ZOOM),
    "-": () => view.zoom(1 / ZOOM),
    0: () => view.fit(false),
    n: () => step(1),
    p: () => step(-1),
    Escape: () => choose(-1),
  };

  slider.addEventListener("input", () => go(Number(slider.value)));

  svg.addEventListener("keydown", (event) => {
    const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : KEYS[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });

  // The wheel belongs to the page until the drawing has been clicked on, or Ctrl is held.
  svg.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== svg) return;
      event.preventDefault();
      const frame = svg.getBoundingClientRect();
      view.zoom(event.deltaY < 0 ? ZOOM : 1 / ZOOM, event.clientX - frame.left, event.clientY - frame.top);
      choose(-1);
    },
    { passive: false },
  );

  let drag = null; // where it began, and where the pointer was last
  svg.addEventListener("pointerdown", (event) => {
    if (event.button === 0) drag = { x0: event.clientX, y0: event.clientY, x: event.clientX, y: event.clientY };
  });
  svg.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const far = Math.hypot(event.clientX - drag.x0, event.clientY - drag.y0) >= DRAG;
    if (!far && !svg.hasPointerCapture(event.pointerId)) return;
    svg.setPointerCapture(event.pointerId); // only now: a click has to reach what it hits
    choose(-1);
    view.pan(drag.x - event.clientX, drag.y - event.clientY);
    [drag.x, drag.y] = [event.clientX, event.clientY];
  });
  for (const kind of ["pointerup", "pointercancel"]) {
    svg.addEventListener(kind, () => {
      drag = null;
    });
  }

  drawn.places.forEach(({ group }, place) => {
    group.addEventListener("pointerenter", () => !drag && choose(place));
    group.addEventListener("pointerleave", () => choose(-1));
  });
  drawn.kernels.forEach((group, kernel) => group.addEventListener("click", () => open(kernel)));

  model.on("change:position", show);
  el.append(root);
  show();
  const resized = new ResizeObserver(() => view.touched || view.fit(true));
  resized.observe(svg);
  return () => {
    resized.disconnect();
    model.off("change:position", show);
  };
}

export default { render };
