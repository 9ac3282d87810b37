// The widget of `f.stages(*args).explore()`: a slider over what a program becomes on its way to machine code.
//
// Everything is decided in Python (explorer.py): where each node lies, what stands there at each
// position of the slider, how it is coloured. This module draws all places and edges once; moving the slider changes
// classes and texts, never coordinates, so what survives a pass stays where it was. It asks nothing of any network.

const SVG = "http://www.w3.org/2000/svg";
const SHAPES = new Set(["svg", "g", "path", "rect", "text", "defs", "marker"]);
const FOCUSABLE = new Set(["svg", "input", "button", "pre"]);

const ZOOM = 1.25; // of one turn of the wheel, or one press of a button
const PAN = 60; // pixels, of one press of an arrow key
const READABLE = 0.75; // pixels to a unit: at fewer, letters are too small to read
const LEGIBLE = 0.55; // likewise, for a box that has to be seen as a whole
const FEWEST_UNITS = 0.1; // to a pixel: no closer than this
const MOST_UNITS = 50; // to a pixel: no further than this
const DRAG = 4; // pixels: what moves less is a click
const TITLE = 22; // units, of the bar of an open box
const MARGIN = 24; // units, around a box that is brought into view
const MOST_RECTANGLES = 400; // in the overview: more of them are too small to be seen

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
  constructor(svg, overview, [width, height]) {
    this.svg = svg;
    this.overview = overview;
    this.size = { width, height };
    this.box = { x: 0, y: 0, width, height };
    this.touched = false; // by the reader: then a window of another width is no reason to fit again
    this.seen = make("rect", { class: "seen" });
  }

  show() {
    const { x, y, width, height } = this.box;
    this.svg.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
    for (const [name, value] of Object.entries(this.box)) this.seen.setAttribute(name, value);
    const whole = x <= 0 && y <= 0 && x + width >= this.size.width && y + height >= this.size.height;
    this.overview.classList.toggle("absent", whole || !this.svg.clientWidth);
  }

  /** The overview: a rectangle for all that is on the page, and one for the part that is seen. */
  rectangles(boxes) {
    const { width, height } = this.size;
    const some = boxes.length > MOST_RECTANGLES ? [] : boxes;
    const rectangles = some.map(({ x, y, w, h }) => make("rect", { x: x - w / 2, y: y - h / 2, width: w, height: h }));
    this.overview.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.overview.replaceChildren(...rectangles, this.seen);
    this.show();
  }

  /** A point of the overview comes into the middle. */
  centre(clientX, clientY) {
    const { x, y } = new DOMPoint(clientX, clientY).matrixTransform(this.overview.getScreenCTM().inverse());
    this.box.x = x - this.box.width / 2;
    this.box.y = y - this.box.height / 2;
    this.touched = true;
    this.show();
  }

  /** Units of the drawing to a pixel. */
  get units() {
    return this.box.width / this.svg.clientWidth;
  }

  /** All of the drawing; or, if it has to stay readable, the upper part of a large one. */
  fit(readable = false) {
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

  /** So that such a box fills the window, as far as it stays readable. */
  frame({ x, y, w, h }) {
    const { clientWidth, clientHeight } = this.svg;
    const scale = clamp(Math.min(clientWidth / (w + MARGIN), clientHeight / (h + MARGIN)), LEGIBLE, 1);
    const [width, height] = [clientWidth / scale, clientHeight / scale];
    const [left, top] = [w + MARGIN > width ? x - w / 2 - MARGIN / 2 : x - width / 2, y - h / 2 - MARGIN / 2];
    this.box = { x: left, y: h + MARGIN > height ? top : y - height / 2, width, height };
    this.touched = true;
    this.show();
  }
}

// Where things lie ---------------------------------------------------------------------------------------------

/** A map along one axis that makes room for what is open: each interval becomes longer, nothing comes closer. */
function stretching(intervals) {
  const longest = new Map(); // of the same middle, such as boxes side by side, the longest counts
  for (const each of intervals) {
    const key = Math.round(each.middle);
    const best = longest.get(key);
    longest.set(key, best ? { ...each, half: Math.max(each.half, best.half), more: Math.max(each.more, best.more) } : each);
  }
  const all = [...longest.values()].filter(({ more }) => more > 0);
  return (at) =>
    all.reduce((sum, { middle, half, more }) => sum + more * clamp((at - middle + half) / (2 * half), 0, 1), at);
}

/** The size of a box with everything that is open in it, and where its parts then lie. */
function arranged(data, open, number) {
  const { items, size } = data.groups[number];
  const inside = items.map(({ group }) => (open.has(group) ? arranged(data, open, group) : null));
  const grown = (at, own) =>
    inside.flatMap((found, each) =>
      found ? [{ middle: items[each][at], half: items[each][own] / 2, more: found[own] - items[each][own] }] : [],
    );
  const across = stretching(grown("x", "w"));
  const along = stretching(grown("y", "h"));
  const boxes = items.map(({ x, y, w, h }, each) => ({
    x: (across(x - w / 2) + across(x + w / 2)) / 2,
    y: (along(y - h / 2) + along(y + h / 2)) / 2,
    w: inside[each]?.w ?? w,
    h: inside[each]?.h ?? h,
  }));
  const [width, height] = [across(size[0]), along(size[1])];
  return { number, boxes, inside, across, along, width, height, w: width, h: height + TITLE };
}

/** The way of an edge as SVG writes it: its ends stay at their boxes, the rest makes room. */
function way({ tail, head, points }, { items }, { boxes, across, along }, dx, dy) {
  const end = (item) => (x, y) => {
    const [from, to] = [items[item], boxes[item]];
    return [to.x + ((x - from.x) * to.w) / from.w, to.y + ((y - from.y) * to.h) / from.h];
  };
  const count = points.length / 2;
  const [first, last, between] = [end(tail), end(head), (x, y) => [across(x), along(y)]];
  const moved = Array.from({ length: count }, (_, at) =>
    (at < 2 ? first : at > count - 4 ? last : between)(points[2 * at], points[2 * at + 1]),
  ).map(([x, y]) => `${(x + dx).toFixed(1)} ${(y + dy).toFixed(1)}`);
  return `M${moved[0]}C${moved.slice(1, -1).join(" ")}L${moved[count - 1]}`;
}

// What is drawn ------------------------------------------------------------------------------------------------

/** A node, a box or a port, without its texts. */
function part({ x, y, w, h }, name) {
  const parts = {
    outline: make("path", { class: "outline" }),
    family: make("rect", { class: "family", x: 2 - w / 2, y: 3 - h / 2, width: 4, height: h - 6 }),
    label: make("text", { class: "label", x: 3, y: -2 }),
    caption: make("text", { class: "caption", x: 3, y: 11 }),
    badge: make("text", { class: "badge", x: w / 2 + 7, y: 7 - h / 2 }),
  };
  const group = make("g", { class: name, role: "img", transform: `translate(${x} ${y})` }, Object.values(parts));
  return { group, ...parts };
}

/** A rectangle around the middle, moved by some units to the right and down. */
const rectangle = (w, h, by) => `M${by - w / 2} ${by - h / 2}h${w}v${h}h${-w}z`;

/** The frame of an open box: a click on it closes it. */
function opened({ x, y, w, h }, label) {
  return make("g", { class: "box open", transform: `translate(${x} ${y})` }, [
    make("rect", { x: -w / 2, y: -h / 2, width: w, height: h, rx: 4 }),
    make("rect", { class: "bar", x: -w / 2, y: -h / 2, width: w, height: TITLE, rx: 4 }),
    make("text", { x: 8 - w / 2, y: 15 - h / 2, text: `− ${label}` }),
  ]);
}

/** Everything that is seen, anew: frames of kernels, then open boxes from the outermost one, with edges below nodes. */
function draw(data, canvas, open) {
  const kernels = data.kernels.map(({ x, y, w, h, colour, title }) => {
    if (x === undefined) return null; // in a large drawing a kernel's nodes may lie in several boxes
    return make("g", { class: "kernel", transform: `translate(${x} ${y})`, style: `--kind: ${colour}` }, [
      make("rect", { x: -w / 2, y: -h / 2, width: w, height: h, rx: 6 }),
      make("text", { x: 6 - w / 2, y: 14 - h / 2, text: title }),
    ]);
  });
  const [edges, items, below] = [[], [], kernels.filter(Boolean)]; // what is drawn first lies below
  const inside = (found, dx, dy) => {
    const group = data.groups[found.number];
    for (const edge of group.edges) {
      const path = make("path", { class: "edge", d: way(edge, group, found, dx, dy) });
      edges.push({ path, of: edge.of, ends: [items.length + edge.tail, items.length + edge.head] });
      below.push(path);
    }
    const later = [];
    group.items.forEach((item, each) => {
      const box = { ...found.boxes[each], x: found.boxes[each].x + dx, y: found.boxes[each].y + dy };
      const more = found.inside[each];
      const number = item.group;
      if (more) {
        const node = opened(box, data.groups[number].label);
        items.push({ ...item, box, number, group: node, isOpen: true });
        later.push(() => {
          below.push(node);
          inside(more, box.x - box.w / 2, box.y - box.h / 2 + TITLE);
        });
      } else {
        const drawn = part(box, item.place !== undefined ? "node" : item.port ? "port" : "box");
        items.push({ ...item, box, number, ...drawn });
        below.push(drawn.group);
      }
    });
    later.forEach((each) => each());
  };
  const whole = arranged(data, open, 0);
  inside(whole, 0, 0);
  canvas.replaceChildren(...below);
  return { kernels, edges, items, size: { width: whole.width, height: whole.height } };
}

/** How an edge is drawn that stands for several: as those that stay, if there are any. */
function kindOf(edges, of) {
  const kinds = of.map((edge) => edges[edge]).filter(Boolean);
  return kinds.find((kind) => kind === "memory") ?? kinds.find((kind) => !BADGES[kind]) ?? kinds[0];
}

/** What stands at one position of the slider. */
function update(data, drawn, { marks, edges, groups, kernels }, { selected }, inside) {
  const connected = new Set();
  drawn.edges.forEach(({ path, of, ends }) => {
    const kind = kindOf(edges, of);
    path.setAttribute("class", `edge ${kind ?? "absent"}`);
    if (kind) ends.forEach((end) => connected.add(end));
  });
  for (const [at, item] of drawn.items.entries()) {
    const { group, place, number, port, isOpen } = item;
    const mark = place !== undefined ? data.marks[marks[place]] : port ? null : data.boxes[groups[number]];
    item.mark = mark;
    if (port) {
      item.outline.setAttribute("d", rectangle(item.box.w, item.box.h, 0));
      item.family.style.fill = "none";
      item.label.textContent = port.length > 34 ? `${port.slice(0, 33)}…` : port;
      item.label.setAttribute("y", 4);
      group.setAttribute("aria-label", port);
      group.setAttribute("class", connected.has(at) ? "port" : "port absent");
      continue;
    }
    const name = place !== undefined ? "node" : isOpen ? "box open" : "box";
    group.setAttribute("class", mark ? `${name} ${mark.change}` : `${name} absent`);
    const parts = place !== undefined ? [place] : inside(number);
    const aside = selected !== null && !parts.some((each) => data.marks[marks[each]]?.kernel === selected);
    group.classList.toggle("aside", Boolean(mark) && aside && !isOpen);
    if (!mark) continue;
    group.setAttribute("aria-label", mark.title);
    if (number !== undefined) {
      group.setAttribute("role", "button");
      group.setAttribute("aria-expanded", Boolean(isOpen));
    }
    if (isOpen) continue;
    const { w, h } = item.box;
    item.outline.setAttribute("d", mark.outline ?? `${rectangle(w, h, 3)}${rectangle(w, h, 0)}`);
    item.family.style.fill = mark.colour || "none";
    item.label.textContent = mark.label;
    item.caption.textContent = mark.caption;
    item.badge.textContent = mark.badge ?? BADGES[mark.change] ?? "";
  }
  drawn.kernels.forEach((group, kernel) => {
    group?.setAttribute("class", kernels ? "kernel" : "kernel absent");
    group?.classList.toggle("selected", kernel === selected);
    group?.classList.toggle("aside", selected !== null && kernel !== selected);
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

/** Which box lies in which, and the places in each. */
class Tree {
  constructor(groups) {
    this.groups = groups;
    this.inside = new Map(); // places in a box, those of the boxes in it included
    this.home = new Map(); // the box of a place
    groups.forEach(({ items }, number) => items.forEach(({ place }) => this.home.set(place, number)));
  }

  places(number) {
    if (!this.inside.has(number)) {
      const found = this.groups[number].items.flatMap(({ place, group }) =>
        group === undefined ? (place === undefined ? [] : [place]) : this.places(group),
      );
      this.inside.set(number, found);
    }
    return this.inside.get(number);
  }

  /** The boxes that a place or a box lies in, from outside to inside, without the outermost one. */
  around({ place, group }) {
    const found = [];
    let at = group === undefined ? this.home.get(place) : this.groups[group].parent;
    for (; at; at = this.groups[at].parent) found.unshift(at);
    return found;
  }

  contains(outer, inner) {
    return inner === outer || this.around({ group: inner }).includes(outer);
  }
}

/** Whether a mark is what somebody searches for. */
function contains(mark, text) {
  return Boolean(mark) && `${mark.label}\n${mark.title}`.toLowerCase().includes(text);
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
    ["fit", "show all of it", () => view.fit()],
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
  const canvas = make("g");
  svg.append(canvas);
  const overview = make("svg", { class: "overview", "aria-hidden": "true" });
  const placeholder = "find name, operation, line";
  const field = make("input", { type: "search", placeholder, "aria-label": placeholder });
  const count = make("output", { class: "count", role: "status" });
  const note = make("div", { class: "details", role: "status", hidden: "" });
  const panel = make("div", { class: "side" });
  const beside = make("div", { class: "beside" }, [panel, overview]);
  const root = make("div", { class: "minitorch-explore" }, [
    make("div", { class: "bar" }, [slider, heading, field, count, make("span", { class: "buttons" }, buttons)]),
    make("div", { class: "stage" }, [make("div", { class: "window" }, [svg, note]), beside]),
    legend(data),
  ]);

  const view = new View(svg, overview, data.groups[0].size);
  const tree = new Tree(data.groups);
  const open = new Set(); // the boxes that are open, besides the outermost one
  let drawn = null; // what is on the page
  let position = null; // what is shown, of data.positions
  let form = null; // what is seen there
  let chosen = null; // the item whose note is open
  let hits = { text: "", at: -1 };

  /** Draw anew, after a box was opened or closed. */
  function redraw() {
    drawn = draw(data, canvas, open);
    view.size = drawn.size;
    for (const item of drawn.items) {
      if (!item.isOpen) item.group.addEventListener("pointerenter", () => !drag && choose(item));
      item.group.addEventListener("pointerleave", () => choose(null));
      item.group.addEventListener("click", () => press(item));
    }
    drawn.kernels.forEach((group, kernel) => group?.addEventListener("click", () => toKernel(kernel)));
    refresh();
  }

  function refresh() {
    chosen = null;
    note.hidden = true;
    update(data, drawn, form, position, (group) => tree.places(group));
    view.rectangles(drawn.items.filter(({ isOpen, mark, port }) => !isOpen && (mark || port)).map(({ box }) => box));
  }

  /** The details of an item; none for null. */
  function choose(item) {
    chosen?.group.classList.remove("chosen");
    chosen = item;
    note.hidden = !item?.mark;
    if (note.hidden) return;
    item.group.classList.add("chosen");
    note.textContent = item.mark.title;
    const at = item.group.getBoundingClientRect();
    const frame = svg.getBoundingClientRect();
    const above = at.bottom - frame.top + note.offsetHeight + 6 > frame.height;
    const top = above ? at.top - frame.top - note.offsetHeight - 6 : at.bottom - frame.top + 6;
    note.style.left = `${clamp(at.left - frame.left, 4, Math.max(4, frame.width - note.offsetWidth - 4))}px`;
    note.style.top = `${clamp(top, 4, Math.max(4, frame.height - note.offsetHeight - 4))}px`;
  }

  /** What a click on an item does: it opens a box, closes an open one, or follows a port. */
  function press(item) {
    if (dragged) return;
    if (item.to) pointAt(item.to);
    else if (item.number !== undefined) turn(item.number, !item.isOpen);
  }

  /** Open a box, or close it and all in it. */
  function turn(group, isOpen) {
    if (isOpen) open.add(group);
    else for (const each of open) if (tree.contains(group, each)) open.delete(each);
    redraw();
    const item = drawn.items.find(({ number }) => number === group);
    if (isOpen) view.frame(item.box);
    else view.reveal(item.box);
  }

  function show() {
    const number = clamp(model.get("position"), 0, last);
    position = data.positions[number];
    form = data.forms[position.form];
    slider.value = number;
    slider.setAttribute("aria-valuetext", position.title);
    heading.textContent = `${number} of ${last}: ${position.title} (${position.summary})`;
    if (drawn) refresh();
    else redraw();
    describe(panel, position, ({ place, kernel }) => (place === null ? toKernel(kernel) : pointAt({ place })));
    panel.scrollTop = 0;
    const frame = data.kernels[position.selected];
    if (frame?.x !== undefined) view.reveal(frame);
    const changed = position.lines.map(({ place }) => seen({ place })?.box).filter(Boolean);
    if (changed.length && !changed.some((box) => view.sees(box))) view.reveal(changed[0]);
  }

  function go(number) {
    model.set("position", clamp(number, 0, last));
    model.save_changes();
  }

  /** The item that is on the page for a place or a box, if there is one. */
  function seen({ place, group }) {
    return drawn.items.find((item) => (group === undefined ? item.place === place : item.number === group));
  }

  /** Bring a place or a box into view, with its details; boxes on the way are opened. */
  function pointAt(target) {
    if (target.place === null) return;
    const closed = tree.around(target).filter((each) => !open.has(each));
    if (closed.length) {
      closed.forEach((each) => open.add(each));
      redraw();
      view.frame(seen({ group: closed.at(-1) }).box);
    }
    const item = seen(target);
    view.reveal(item.box);
    choose(item);
  }

  /** The position of a kernel. */
  function toKernel(kernel) {
    go(data.kernels[kernel].position);
  }

  /** The next item, or the one before, in which something stands. */
  function step(by) {
    const there = drawn.items.filter(({ mark }) => mark);
    const at = there.indexOf(chosen);
    const item = there[at < 0 ? 0 : (at + by + there.length) % there.length];
    view.reveal(item.box);
    choose(item);
  }

  /** Go to the next place, or the one before, whose details contain what is in the field. */
  function search(by) {
    const text = field.value.trim().toLowerCase();
    const found = form.marks.flatMap((mark, place) => (contains(data.marks[mark], text) ? [place] : []));
    if (!text || !found.length) {
      count.textContent = text ? "not found" : "";
      choose(null);
      return;
    }
    const at = text === hits.text ? (hits.at + by + found.length) % found.length : 0;
    hits = { text, at };
    count.textContent = `${at + 1} of ${found.length}`;
    pointAt({ place: found[at] });
  }

  const KEYS = {
    ArrowLeft: () => view.pan(-PAN, 0),
    ArrowRight: () => view.pan(PAN, 0),
    ArrowUp: () => view.pan(0, -PAN),
    ArrowDown: () => view.pan(0, PAN),
    "+": () => view.zoom(ZOOM),
    "-": () => view.zoom(1 / ZOOM),
    0: () => view.fit(),
    n: () => step(1),
    p: () => step(-1),
    Enter: () => chosen && press(chosen),
    Escape: () => choose(null),
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
      choose(null);
    },
    { passive: false },
  );

  let drag = null; // where it began, and where the pointer was last
  let dragged = false; // since the button was pressed: then its end is no click
  svg.addEventListener("pointerdown", (event) => {
    dragged = false;
    if (event.button === 0) drag = { x0: event.clientX, y0: event.clientY, x: event.clientX, y: event.clientY };
  });
  svg.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const far = Math.hypot(event.clientX - drag.x0, event.clientY - drag.y0) >= DRAG;
    if (!far && !svg.hasPointerCapture(event.pointerId)) return;
    svg.setPointerCapture(event.pointerId); // only now: a click has to reach what it hits
    dragged = true;
    choose(null);
    view.pan(drag.x - event.clientX, drag.y - event.clientY);
    [drag.x, drag.y] = [event.clientX, event.clientY];
  });
  for (const kind of ["pointerup", "pointercancel"]) {
    svg.addEventListener(kind, () => {
      drag = null;
    });
  }

  overview.addEventListener("click", ({ clientX, clientY }) => view.centre(clientX, clientY));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") search(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") field.value = count.textContent = "";
  });

  model.on("change:position", show);
  el.append(root);
  show();
  const resized = new ResizeObserver(() => (view.touched ? view.show() : view.fit(true)));
  resized.observe(svg);
  return () => {
    resized.disconnect();
    model.off("change:position", show);
  };
}

export default { render };
