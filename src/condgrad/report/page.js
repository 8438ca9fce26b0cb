"use strict";
// Draws the plots of a report: log or linear, one unit of cost at a time, curves that can be hidden, values under the pointer.
(() => {
  const read = (id) => document.getElementById(id).textContent;
  const NS = (document.querySelector(".canvas svg") || document.createElement("svg")).namespaceURI;

  function make(parent, name, attributes = {}, text = null) {
    const html = parent.namespaceURI !== NS && name !== "svg";
    const node = html ? document.createElement(name) : document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== null) node.textContent = text;
    parent.append(node);
    return node;
  }

  const paint = (colour) => (colour === "ink" ? "currentColor" : colour);
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const shown = (value) => {
    const rounded = Number(value.toPrecision(3)), size = Math.abs(rounded); // as format_number() in plain.py
    return size === 0 || (size >= 1e-3 && size < 1e5) ? String(rounded) : rounded.toExponential(2).replace("e+", "e");
  };

  const SHAPES = {
    circle: "M-3.6,0a3.6,3.6 0 1,0 7.2,0a3.6,3.6 0 1,0 -7.2,0z",
    square: "M-3.2,-3.2h6.4v6.4h-6.4z",
    triangle: "M0,-4.2L4,3.2H-4z",
    diamond: "M0,-4.6L4.2,0L0,4.6L-4.2,0z",
    nabla: "M0,4.2L4,-3.2H-4z",
    plus: "M-1.4,-4.2h2.8v2.8h2.8v2.8h-2.8v2.8h-2.8v-2.8h-2.8v-2.8h2.8z",
    hexagon: "M-4.2,0L-2.1,-3.7H2.1L4.2,0L2.1,3.7H-2.1z",
  };
  const CROSS = "M-5,-5L5,5M-5,5L5,-5";

  function marker(parent, curve, x, y, name = "marker") {
    const shape = name === "end" ? CROSS : SHAPES[curve.marker];
    const colours = name === "end" ? { stroke: paint(curve.colour) } : { fill: paint(curve.colour) };
    return make(parent, "path", { class: name, d: shape, transform: `translate(${x.toFixed(1)},${y.toFixed(1)})`, ...colours });
  }

  // Linear axis between two pixel positions: map from values to pixels, and ticks with labels.
  function linear(low, high, from, to, whole) {
    const span = high - low || Math.abs(high) || 1, pad = 0.05 * span;
    const a = low - pad, b = high + pad, room = Math.abs(to - from) / (to > from ? 80 : 48);
    const rough = (b - a) / room, unit = 10 ** Math.floor(Math.log10(rough));
    const round = unit * [1, 2, 5, 10].find((factor) => factor * unit >= rough), step = whole ? Math.max(round, 1) : round;
    const map = (value) => from + ((value - a) / (b - a)) * (to - from);
    const ticks = [];
    for (let k = Math.ceil(a / step); k * step <= b; k++) ticks.push({ value: k * step, label: String(Number((k * step).toPrecision(6))) });
    return { map, lines: [], ticks };
  }

  // The same for a logarithmic axis.
  function log(low, high, from, to) {
    let a = Math.log10(low), b = Math.log10(high);
    if (b - a < 0.3) { const middle = (a + b) / 2; a = middle - 0.15; b = middle + 0.15; }
    const pad = 0.03 * (b - a);
    a -= pad; b += pad;
    const map = (value) => from + ((Math.log10(value) - a) / (b - a)) * (to - from);
    const room = Math.abs(to - from) / (to > from ? 62 : 34);
    const every = Math.max(1, Math.ceil((b - a) / room));
    const digits = b - a < 1 ? [1, 2, 3, 4, 5, 6, 7, 8, 9] : b - a < 2.2 ? [1, 2, 5] : [1];
    const ticks = [], lines = [];
    for (let e = Math.floor(a); e <= Math.ceil(b); e++) {
      for (let d = 1; d <= 9; d++) {
        const value = Number(`${d}e${e}`), place = Math.log10(value);
        if (place < a || place > b) continue;
        if (digits.includes(d) && (d > 1 || e % every === 0)) ticks.push({ value, d, e });
        else if (every === 1 && b - a < 6) lines.push(value);
      }
    }
    const plain = ticks.every(({ e }) => e >= -3 && e <= 4);
    return { map, lines, ticks: ticks.map(({ value, d, e }) => ({ value, label: plain ? String(value) : power(d, e) })) };
  }

  function power(d, e) {
    const raised = [...String(e)].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] || "⁻").join("");
    return `${d === 1 ? "" : `${d}·`}10${raised}`;
  }

  function start(figure, plot) {
    const svg = figure.querySelector(".canvas svg"), tip = figure.querySelector(".tip");
    const hidden = new Set();
    let unit = plot.units[0], points = [], at = null;

    const of = (curve) => curve.bands[unit.key];
    const visible = () => plot.curves.filter((curve) => !hidden.has(curve) && of(curve));

    function draw() {
      const width = Math.max(svg.clientWidth, 280), height = Math.max(svg.clientHeight, 240);
      const left = 66, right = width - 14, top = 12, bottom = height - 48;
      svg.replaceChildren();
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.setAttribute("aria-label", `${plot.title}: ${plot.y} against ${unit.label}. Arrow keys read the values.`);
      points = []; leave();
      for (const button of figure.querySelectorAll(".legend button")) {
        const absent = !of(plot.curves[button.dataset.curve]);
        button.classList.toggle("absent", absent);
        button.title = absent ? `Nothing measured against ${unit.label}` : "";
      }
      const curves = visible();
      const all = curves.map(of);
      const xs = all.flatMap((band) => band.x);
      const ys = all.flatMap((band) => [...(band.low || band.middle), ...(band.high || band.middle)]);
      if (plot.target) ys.push(plot.target);
      if (!xs.length) {
        make(svg, "text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "Nothing to show: choose a method below or another axis.");
        return;
      }
      const [x, y] = [[xs, left, right], [ys, bottom, top]].map(([values, from, to], i) =>
        (plot.scales[i] === "linear" ? linear : log)(Math.min(...values), Math.max(...values), from, to, values.every(Number.isInteger)));

      for (const value of x.lines) make(svg, "line", { class: "grid", x1: x.map(value), x2: x.map(value), y1: top, y2: bottom });
      for (const value of y.lines) make(svg, "line", { class: "grid", x1: left, x2: right, y1: y.map(value), y2: y.map(value) });
      for (const { value, label } of x.ticks) {
        make(svg, "line", { class: "grid major", x1: x.map(value), x2: x.map(value), y1: top, y2: bottom });
        make(svg, "text", { x: x.map(value), y: bottom + 18, "text-anchor": "middle" }, label);
      }
      for (const { value, label } of y.ticks) {
        make(svg, "line", { class: "grid major", x1: left, x2: right, y1: y.map(value), y2: y.map(value) });
        make(svg, "text", { x: left - 8, y: y.map(value) + 4, "text-anchor": "end" }, label);
      }
      make(svg, "path", { class: "frame", d: `M${left},${top}V${bottom}H${right}` });
      make(svg, "text", { class: "axis-title x", x: (left + right) / 2, y: height - 8, "text-anchor": "middle" }, unit.label);
      const turn = `translate(15,${(top + bottom) / 2}) rotate(-90)`;
      make(svg, "text", { class: "axis-title y", transform: turn, "text-anchor": "middle" }, plot.y);
      if (plot.target) {
        const place = y.map(plot.target);
        make(svg, "line", { class: "target", x1: left, x2: right, y1: place, y2: place });
        make(svg, "text", { class: "over", x: left + 6, y: place - 6 }, `target ${shown(plot.target)}`);
      }
      for (const curve of curves) drawCurve(curve, x.map, y.map);
    }

    function drawCurve(curve, x, y) {
      const band = of(curve), i = plot.curves.indexOf(curve), n = band.x.length;
      const group = make(svg, "g", { class: "curve", "data-curve": i });
      const path = (values) => values.map((value, j) => `${x(band.x[j]).toFixed(1)},${y(value).toFixed(1)}`);
      if (band.low && n > 1) {
        const d = `M${path(band.high).join("L")}L${path(band.low).reverse().join("L")}Z`;
        make(group, "path", { class: "band", d, fill: paint(curve.colour) });
      }
      const middle = path(band.middle);
      const look = { stroke: paint(curve.colour), "stroke-dasharray": curve.dashes };
      if (n > 1) make(group, "path", { class: "line", d: `M${middle.join("L")}`, ...look });
      const every = Math.max(1, Math.floor(n / 5));
      for (let j = (7 * i) % every; j < n; j += every) marker(group, curve, x(band.x[j]), y(band.middle[j]));
      if (curve.note) marker(group, curve, x(band.x[n - 1]), y(band.middle[n - 1]), "end");
      band.x.forEach((value, j) => points.push({ curve, j, x: x(value), y: y(band.middle[j]) }));
    }

    function show(point) {
      at = point;
      svg.querySelector(".hit")?.remove();
      const { curve, j } = point, band = of(curve);
      make(svg, "circle", { class: "hit", cx: point.x, cy: point.y, r: 5, stroke: paint(curve.colour) });
      tip.replaceChildren();
      make(tip, "b", {}, curve.label);
      make(tip, "span", {}, `${unit.label}: ${shown(band.x[j])}`);
      make(tip, "span", {}, `${plot.y}: ${shown(band.middle[j])}`);
      if (band.low) make(tip, "span", {}, `quartiles ${shown(band.low[j])} to ${shown(band.high[j])}, ${band.runs} seeds`);
      if (curve.note && j === band.x.length - 1) make(tip, "span", {}, curve.note);
      tip.hidden = false;
      const beside = point.x + 14 + tip.offsetWidth < svg.clientWidth ? point.x + 14 : point.x - 14 - tip.offsetWidth;
      tip.style.left = `${Math.max(0, beside)}px`;
      tip.style.top = `${clamp(point.y - tip.offsetHeight - 10, 0, svg.clientHeight)}px`;
      for (const group of svg.querySelectorAll(".curve")) {
        group.classList.toggle("faded", group.dataset.curve !== String(plot.curves.indexOf(curve)));
      }
    }

    function leave() {
      at = null;
      tip.hidden = true;
      svg.querySelector(".hit")?.remove();
      for (const group of svg.querySelectorAll(".faded")) group.classList.remove("faded");
    }

    function nearest(x, y, among = points) {
      const distance = (point) => (point.x - x) ** 2 + (point.y - y) ** 2;
      return among.reduce((best, point) => (!best || distance(point) < distance(best) ? point : best), null);
    }

    function follow(event) {
      const box = svg.getBoundingClientRect();
      const found = nearest(event.clientX - box.left, event.clientY - box.top);
      if (found && Math.hypot(found.x - event.clientX + box.left, found.y - event.clientY + box.top) < 60) show(found);
      else leave();
    }

    function key(event) {
      if (event.key === "Escape") return leave();
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!step || !points.length) return;
      event.preventDefault();
      if (!at) return show(points[0]);
      const curves = visible(), own = points.filter((point) => point.curve === at.curve);
      if (step[0]) return show(own[clamp(own.indexOf(at) + 4 * step[0], 0, own.length - 1)]);
      const other = curves[(curves.indexOf(at.curve) + step[1] + curves.length) % curves.length];
      show(nearest(at.x, at.y, points.filter((point) => point.curve === other)));
    }

    function units() {
      const bar = figure.querySelector(".units");
      for (const choice of plot.units) {
        const button = make(bar, "button", { type: "button", "aria-pressed": choice === unit, "data-unit": choice.key }, choice.label);
        button.addEventListener("click", () => {
          unit = choice;
          for (const other of bar.children) other.setAttribute("aria-pressed", other === button);
          draw();
        });
      }
    }

    function legend() {
      const box = figure.querySelector(".legend");
      for (const name of new Set(plot.curves.map((curve) => curve.group))) {
        const column = make(box, "div");
        if (name) make(column, "h4", {}, name);
        for (const curve of plot.curves.filter((each) => each.group === name)) entry(column, curve);
      }
    }

    function entry(column, curve) {
      const button = make(column, "button", { type: "button", "aria-pressed": true, "data-curve": plot.curves.indexOf(curve) });
      const sample = make(button, "svg", { viewBox: "0 0 44 14", "aria-hidden": true });
      make(sample, "path", { class: "line", d: "M1,7H43", stroke: paint(curve.colour), "stroke-dasharray": curve.dashes });
      marker(sample, curve, 22, 7);
      const text = make(button, "span", {}, curve.label);
      if (curve.note) make(text, "small", {}, `✕ ${curve.note}`);
      button.addEventListener("click", () => {
        const away = !hidden.delete(curve);
        if (away) hidden.add(curve);
        button.setAttribute("aria-pressed", !away);
        draw();
      });
    }

    units();
    legend();
    draw();
    svg.addEventListener("pointermove", follow);
    svg.addEventListener("pointerdown", follow);
    svg.addEventListener("pointerleave", leave);
    svg.addEventListener("keydown", key);
    svg.addEventListener("blur", leave);
    new ResizeObserver(draw).observe(svg);
  }

  const plots = JSON.parse(read("plots"));
  document.querySelectorAll("figure.plot").forEach((figure, i) => start(figure, plots[i]));

  const download = document.getElementById("download");
  download.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([read("data")], { type: "application/json" }));
    link.download = download.dataset.name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
})();
