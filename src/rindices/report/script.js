"use strict";
// Everything that comes from a table goes into the page as text, never as HTML.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const ROWS_SHOWN = 15;
  const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  const byId = (id) => document.getElementById(id);

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }
  const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
  const draw = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
  const minus = (text) => text.replace("-", "\u2212");
  const fixed = (value, digits) => (value === null ? "\u2013" : minus(value.toFixed(digits)));
  const signed = (value) => (value === null ? "\u2013" : (value > 0 ? "+" : "") + fixed(value, 2));

  // ---- Tables: sort, show all, download ----
  const valueOf = (cell) => cell.dataset.value ?? cell.textContent;

  function compareCells(first, second, isNumber) {
    if (!isNumber) return first.localeCompare(second, "en", { numeric: true });
    return parseFloat(first) - parseFloat(second);
  }

  function sortTable(table, place, header) {
    const down = header.getAttribute("aria-sort") === "ascending";
    const isNumber = header.classList.contains("number");
    const known = (row) => !isNumber || !Number.isNaN(parseFloat(valueOf(row.cells[place])));
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => {
      if (known(a) !== known(b)) return known(a) ? -1 : 1;  // what is unknown stays last
      if (!known(a)) return 0;
      const order = compareCells(valueOf(a.cells[place]), valueOf(b.cells[place]), isNumber);
      return down ? -order : order;
    });
    for (const other of header.parentNode.cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    table.tBodies[0].append(...rows);
  }

  function collapse(table) {
    const open = table.classList.contains("open");
    [...table.tBodies[0].rows].forEach((row, place) => row.classList.toggle("extra", !open && place >= ROWS_SHOWN));
  }

  // A spreadsheet would take such a cell for a formula, or what follows a semicolon, a tab or a line break within it;
  // the rule is that of files.py.
  const FORMULA = /^[\s\u0000-\u0020\u007f\u200b-\u200f\u2060\ufeff"']*[=+\-@\uff1d\uff0b\uff0d\uff20]/;
  const EMPTY = /^[\s\u0000-\u0020\u007f\u200b-\u200f\u2060\ufeff"']*$/;

  function harmless(text) {
    const parts = text.split(/([;\t\r\n])/);  // cells at even places, borders between them
    return parts.map((part, place) => {
      const runs = FORMULA.test(part) && !NUMBER.test(part) && !/^[=+\-@]$/.test(part);
      const hidden = place === 0 && EMPTY.test(part) && /[\t\r\n]/.test(parts[1] ?? "");
      return place % 2 === 0 && (runs || hidden) ? "'" + part : part;
    }).join("");
  }

  function csvCell(text) {
    const safe = harmless(text);
    return /[",;\r\n\t]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
  }

  function csvOf(table) {
    const headers = [...table.tHead.rows[0].cells];
    const parts = headers.map((header) => (header.dataset.parts ? header.dataset.parts.split("|") : null));
    const names = headers.flatMap((header, place) => parts[place] ?? [header.textContent]);
    const rows = [...table.tBodies[0].rows].map((row) =>
      [...row.cells].flatMap((cell, place) => (parts[place] ? valueOf(cell).split("|") : [valueOf(cell)])));
    return [names, ...rows].map((row) => row.map(csvCell).join(",") + "\r\n").join("");
  }

  function download(text, name) {
    const url = URL.createObjectURL(new Blob(["\ufeff" + text], { type: "text/csv;charset=utf-8" }));
    make("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  function prepareTable(table) {
    const plain = table.caption.textContent.toLowerCase().replace(/[^a-z0-9]+/g, "-");
    table.dataset.file = plain.replace(/^-|-$/g, "").slice(0, 60);
    [...table.tHead.rows[0].cells].forEach((header, place) => {
      const button = make("button", { type: "button", class: "sort" }, header.textContent);
      button.addEventListener("click", () => { sortTable(table, place, header); collapse(table); });
      header.replaceChildren(button);
    });
    const tools = make("p", { class: "tools" });
    const total = table.tBodies[0].rows.length;
    if (total > ROWS_SHOWN) {
      const words = () => (table.classList.contains("open") ? `Show ${ROWS_SHOWN} rows` : `Show all ${total} rows`);
      const more = make("button", { type: "button", "aria-expanded": "false" }, words());
      more.addEventListener("click", () => {
        more.setAttribute("aria-expanded", String(table.classList.toggle("open")));
        more.textContent = words();
        collapse(table);
      });
      tools.append(more, " ");
      collapse(table);
    }
    const save = make("button", { type: "button" }, "Download CSV");
    save.addEventListener("click", () => download(csvOf(table), `${table.dataset.file || "table"}.csv`));
    tools.append(save);
    table.parentNode.after(tools);
  }

  // ---- Copy ----
  async function copyText(node, button) {
    let done = true;
    try {
      await navigator.clipboard.writeText(node.innerText);
    } catch {
      getSelection().selectAllChildren(node);  // a page in a frame may not reach the clipboard itself
      done = document.execCommand("copy");
    }
    button.textContent = done ? "Copied" : "Selected: copy with Ctrl+C";
    setTimeout(() => { button.textContent = "Copy"; }, 2500);
  }

  // ---- A person's card ----
  const GROUPS = { control: "Control", patient: "Patient", other: "Other" };

  function aboveWords(share, who) {
    if (share === undefined || share === null) return "";
    if (share >= 100) return `higher than all ${who}`;
    return share <= 0 ? `not higher than any of the ${who}` : `higher than ${Math.min(share, 99.9).toFixed(share < 99 ? 0 : 1)} % of ${who}`;
  }

  function bar(value, limits, controls) {
    const low = Math.min(0, value ?? 0), high = Math.max(1, value ?? 1, limits[1] ?? 1);
    const x = (at) => 8 + (384 * (Math.max(low, Math.min(high, at)) - low)) / (high - low);
    const svg = draw("svg", { viewBox: "0 0 400 34", class: "bar", "aria-hidden": "true" });
    if (controls) {
      svg.append(draw("rect", { class: "band", x: x(controls[0]), width: Math.max(1, x(controls[2]) - x(controls[0])), y: 0, height: 20 }));
    }
    if (value !== null) {
      svg.append(draw("rect", { class: "r", x: Math.min(x(0), x(value)), width: Math.max(0.5, Math.abs(x(value) - x(0))), y: 5, height: 10 }));
      if (limits.length) svg.append(draw("path", { class: "interval", d: `M${x(limits[0])} 10H${x(limits[1])}M${x(limits[0])} 7V13M${x(limits[1])} 7V13` }));
    }
    if (controls) svg.append(draw("path", { class: "median", d: `M${x(controls[1])} 0V20` }));
    svg.append(draw("path", { class: "axis", d: `M${x(low)} 20H${x(high)}M${x(0)} 17V23M${x(0.5)} 19V22M${x(1)} 17V23` }));
    for (const at of [0, 0.5, 1]) svg.append(draw("text", { x: x(at), y: 32 }, String(at)));
    return svg;
  }

  function driversTable(list, regions) {
    const heads = ["Region", "Pattern's part", "z"];
    const head = make("tr", {}, ...heads.map((text, place) => make("th", { scope: "col", class: place ? "number" : "" }, text)));
    const rows = [];
    for (let at = 0; at < list.length; at += 3) {  // region, change and z, one after the other
      const [place, change, z] = list.slice(at, at + 3);
      rows.push(make("tr", {}, make("th", { scope: "row" }, regions[place]),
        make("td", { class: "number" }, signed(change)), make("td", { class: "number" }, signed(z))));
    }
    return make("table", { class: "plain" }, make("thead", {}, head), make("tbody", {}, ...rows));
  }

  function patternBlock(visit, place, data) {
    const value = visit.r[place], limits = [visit.low?.[place], visit.high?.[place]].filter((end) => typeof end === "number");
    const interval = limits.length ? ` (${data.level} interval ${limits.map((end) => fixed(end, 2)).join(" to ")})` : "";
    const above = value === null ? "" : aboveWords(visit.above?.[place], data.reference);
    const block = make("div", { class: "pattern" },
      make("p", {}, make("strong", {}, `${data.name}${place + 1}: `), fixed(value, 2), interval, above ? `, ${above}` : ""),
      bar(value, limits, data.controls[place]));
    const drivers = visit.drivers?.[place];
    if (drivers?.length) block.append(driversTable(drivers, data.regions));
    return block;
  }

  function cardOf(person, data) {
    const title = person.id === undefined ? `Example: a ${person.group}` : person.id;
    const card = make("article", { class: "card" }, make("h3", { tabindex: "-1" }, title));
    const facts = [GROUPS[person.group] ?? person.group];
    if (person.diagnosis) facts.push(`diagnosis: ${person.diagnosis}`);
    if (person.visits.length > 1) facts.push(`${person.visits.length} visits`);
    card.append(make("p", { class: "aside" }, facts.join(" · ")));
    for (const visit of person.visits) {
      if (visit.visit !== undefined) card.append(make("h4", {}, `Visit ${visit.visit}`));
      if (visit.flags) card.append(make("p", { class: "note warnings" }, `Unusual: ${visit.flags}`));
      const blocks = visit.r.map((_, place) => patternBlock(visit, place, data));
      card.append(make("div", { class: "patterns" }, ...blocks));
    }
    return card;
  }

  // ---- Everybody: search, figure, links ----
  function explorer(data) {
    const people = new Map(data.people.map((person) => [person.id, person]));
    const dialog = byId("card"), found = byId("found"), who = byId("who");

    function open(id) {
      const person = people.get(id);
      found.textContent = person ? "" : `There is no card of “${id}”.`;
      if (!person) return;
      const close = make("button", { type: "button", class: "close" }, "Close");
      close.addEventListener("click", () => dialog.close());
      dialog.replaceChildren(close, cardOf(person, data));
      if (!dialog.open) dialog.showModal();
      dialog.scrollTop = 0;
      remember(`#person=${encodeURIComponent(id)}`);
    }
    function remember(hash) {
      try { history.replaceState(null, "", hash); } catch { /* a page in a frame has no address of its own */ }
    }
    function follow() {
      if (!location.hash.startsWith("#person=")) return;
      try { open(decodeURIComponent(location.hash.slice(8))); } catch { found.textContent = "This link is damaged."; }
    }
    dialog.addEventListener("close", () => remember("#cards"));
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    byId("everybody").append(...data.people.map((person) => make("option", { value: person.id })));
    byId("find").addEventListener("submit", (event) => { event.preventDefault(); open(who.value.trim()); });
    byId("explorer").hidden = false;
    if (byId("scatter")) prepareScatter(data, open);
    addEventListener("hashchange", follow);
    follow();
  }

  function prepareScatter(data, open) {
    const selects = [byId("across"), byId("up")];
    selects.forEach((select, axis) => {
      for (let place = 0; place < data.patterns; place += 1) {
        select.append(make("option", { value: place, ...(place === axis ? { selected: "" } : {}) }, `${data.name}${place + 1}`));
      }
      select.addEventListener("change", () => drawScatter(data, open, selects.map((one) => Number(one.value))));
    });
    drawScatter(data, open, [0, 1]);
  }

  function mark(group, x, y) {
    if (group === "control") return draw("path", { d: `M${x - 3.5} ${y - 3.5}l7 7m0 -7l-7 7` });
    if (group === "other") return draw("rect", { x: x - 3, y: y - 3, width: 6, height: 6 });
    return draw("circle", { cx: x, cy: y, r: 4 });
  }

  function drawScatter(data, open, [across, up]) {
    const points = data.people
      .map((person) => ({ person, x: person.visits[0].r[across], y: person.visits[0].r[up] }))
      .filter((point) => point.x !== null && point.y !== null)
      .sort((a, b) => a.x - b.x);
    const every = points.flatMap((point) => [point.x, point.y]);
    const low = every.reduce((a, b) => Math.min(a, b), 0) - 0.05, high = every.reduce((a, b) => Math.max(a, b), 1) + 0.05;
    const at = (value) => (520 * (value - low)) / (high - low);
    const [first, second] = [across, up].map((place) => `${data.name}${place + 1}`);
    const svg = draw("svg", { viewBox: "0 0 600 580", class: "scatter", role: "group", "aria-label": `${first} against ${second}; arrow keys move from person to person` });
    for (let tick = Math.ceil(low * 2) / 2; tick <= high; tick += 0.5) {
      svg.append(draw("path", { class: "grid", d: `M60 ${530 - at(tick)}H580M${60 + at(tick)} 10V530` }));
      svg.append(draw("text", { x: 52, y: 534 - at(tick), "text-anchor": "end" }, minus(String(tick))));
      svg.append(draw("text", { x: 60 + at(tick), y: 548, "text-anchor": "middle" }, minus(String(tick))));
    }
    svg.append(draw("text", { x: 320, y: 572, "text-anchor": "middle" }, first));
    svg.append(draw("text", { x: 16, y: 270, "text-anchor": "middle", transform: "rotate(-90 16 270)" }, second));
    const shapes = points.map((point) => {
      const shape = mark(point.person.group, 60 + at(point.x), 530 - at(point.y));
      const words = `${point.person.id}, ${point.person.group}, ${first} ${fixed(point.x, 2)}, ${second} ${fixed(point.y, 2)}`;
      fill(shape, { class: point.person.group, tabindex: "-1", role: "button", "aria-label": words }, [draw("title", {}, words)]);
      shape.addEventListener("click", () => open(point.person.id));
      return shape;
    });
    // Controls first, so that patients are not hidden; one stop for the tab key, then the arrow keys.
    const order = (group) => ["control", "other", "patient"].indexOf(group);
    const layers = points.map((_, place) => place).sort((a, b) => order(points[a].person.group) - order(points[b].person.group));
    svg.append(...layers.map((place) => shapes[place]));
    if (shapes.length) shapes[0].setAttribute("tabindex", "0");
    svg.addEventListener("keydown", (event) => moveIn(event, shapes, points, open));
    byId("scatter").replaceChildren(svg);
  }

  function moveIn(event, shapes, points, open) {
    const here = shapes.indexOf(event.target);
    if (here < 0) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      open(points[here].person.id);
      return;
    }
    const steps = { ArrowRight: here + 1, ArrowLeft: here - 1, ArrowUp: here + 1, ArrowDown: here - 1, Home: 0, End: shapes.length - 1 };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(shapes.length - 1, steps[event.key]));
    shapes[here].setAttribute("tabindex", "-1");
    shapes[next].setAttribute("tabindex", "0");
    shapes[next].focus();
  }

  // ---- Begin ----
  document.querySelectorAll("table.data").forEach(prepareTable);
  document.querySelectorAll("button[data-copy]").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => copyText(byId(button.dataset.copy), button));
  });
  const source = byId("cards-data");
  if (source) {
    const data = JSON.parse(source.textContent);
    if (data.ids) explorer(data);
    else byId("example").replaceChildren(...data.people.map((person) => cardOf(person, data)));
  }
})();
