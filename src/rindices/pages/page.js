"use strict";
// Everything that comes from a table goes into the page as text, never as HTML.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const ROWS_SHOWN = 15;  // page.css hides the others
  const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  const MOST_BYTES = 512 * 2 ** 20;
  const byId = (id) => document.getElementById(id);
  const all = (what, within = document) => [...within.querySelectorAll(what)];
  const on = (what, event, act, within) => all(what, within).forEach((node) => node.addEventListener(event, () => act(node)));

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children.filter(Boolean));  // a part that is left out is empty
    return node;
  }
  const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
  const draw = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  function button(words, act, attributes = {}) {
    const made = make("button", { type: "button", ...attributes }, words);
    made.addEventListener("click", act);
    return made;
  }

  const minus = (text) => text.replace("-", "\u2212");
  const fixed = (value, digits) => (value === null ? "\u2013" : minus(value.toFixed(digits)));
  const signed = (value) => (value === null ? "\u2013" : (value > 0 ? "+" : "") + fixed(value, 2));

  // ---- Tables: sort, show all, download ----
  const valueOf = (cell) => cell.dataset.value ?? cell.textContent;

  const WORDS = new Intl.Collator("en", { numeric: true });

  function prepareSort(table) {
    [...table.tHead.rows[0].cells].forEach((header, place) => {
      header.replaceChildren(button(header.textContent, () => sortTable(table, place, header), { class: "sort" }));
    });
  }

  function sortTable(table, place, header) {
    const down = (header.getAttribute("aria-sort") ?? header.dataset.before) === "ascending";
    const isNumber = header.classList.contains("number");
    const of = (row) => (isNumber ? parseFloat(valueOf(row.cells[place])) : valueOf(row.cells[place]));
    const order = (a, b) => (isNumber ? of(a) - of(b) : WORDS.compare(of(a), of(b)));
    const isUnknown = (row) => Number.isNaN(of(row));  // these come last
    const rows = [...table.tBodies[0].rows].sort((a, b) => isUnknown(a) - isUnknown(b) || (down ? -1 : 1) * order(a, b));
    for (const other of header.parentNode.cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    table.tBodies[0].append(...rows);
  }

  const csvCell = (text) => (/[",;\r\n\t]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

  // Spreadsheets cannot take the value of a cell for a formula: files.py saw to that.
  function csvOf(table) {
    const headers = [...table.tHead.rows[0].cells];
    const parts = headers.map((header) => (header.dataset.parts ? header.dataset.parts.split("|") : null));
    const names = headers.flatMap((header, place) => parts[place] ?? [valueOf(header)]);
    const rows = [...table.tBodies[0].rows].map((row) =>
      [...row.cells].flatMap((cell, place) => (parts[place] ? valueOf(cell).split("|") : [valueOf(cell)])));
    return [names, ...rows].map((row) => row.map(csvCell).join(",") + "\r\n").join("");
  }

  function download(parts, type, name) {
    const url = URL.createObjectURL(new Blob(parts, { type }));
    make("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  function prepareTable(table) {
    const plain = table.caption.textContent.toLowerCase().replace(/[^a-z0-9]+/g, "-");
    table.dataset.file = plain.replace(/^-|-$/g, "").slice(0, 60);
    prepareSort(table);
    const tools = make("p", { class: "tools" });
    const total = table.tBodies[0].rows.length;
    if (total > ROWS_SHOWN) {
      const more = button(`Show all ${total} rows`, () => {
        const isCut = table.classList.toggle("cut");
        more.setAttribute("aria-expanded", String(!isCut));
        more.textContent = isCut ? `Show all ${total} rows` : `Show ${ROWS_SHOWN} rows`;
      }, { "aria-expanded": "false" });
      table.classList.add("cut");
      tools.append(more, " ");
    }
    tools.append(button("Download CSV", () => download(["\ufeff" + csvOf(table)], "text/csv;charset=utf-8", `${table.dataset.file || "table"}.csv`)));
    table.parentNode.after(tools);
  }

  // ---- Copy ----
  async function copyText(node, button) {
    const words = button.textContent;
    let done = true;
    try {
      await navigator.clipboard.writeText(node.innerText);
    } catch {
      getSelection().selectAllChildren(node);  // a page in a frame may have no access to the clipboard
      done = document.execCommand("copy");
    }
    button.textContent = done ? "Copied" : "Selected: copy with Ctrl+C";
    setTimeout(() => { button.textContent = words; }, 2500);
  }

  // ---- Figures: download, scroll ----
  function standAlone(svg) {
    const copy = svg.cloneNode(true);
    const { width, height } = svg.viewBox.baseVal;
    copy.removeAttribute("style");
    fill(copy, { xmlns: SVG, width, height }, []);
    // Drawing programs do not know the variables of a page, so files have the colours of light mode.
    return new XMLSerializer().serializeToString(copy).replace(/var\(--[\w-]+, (#[0-9a-f]{6})\)/g, "$1");
  }

  function savePng(text, name) {
    const image = new Image();
    image.onload = () => {
      const canvas = make("canvas", { width: 3 * image.width, height: 3 * image.height });
      const pen = canvas.getContext("2d");
      pen.fillStyle = "#ffffff";
      pen.fillRect(0, 0, canvas.width, canvas.height);
      pen.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => download([blob], "image/png", name));
    };
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  }

  function prepareFigure(figure) {
    const svg = figure.querySelector("svg"), { name } = figure.dataset, tools = make("span", { class: "tools" });
    const save = {
      SVG: () => download([standAlone(svg)], "image/svg+xml", `${name}.svg`),
      PNG: () => savePng(standAlone(svg), `${name}.png`),
    };
    for (const [kind, act] of Object.entries(save)) tools.append(button(kind, act, { "aria-label": `Save this figure as ${kind}` }), " ");
    figure.querySelector("figcaption").append(" ", tools);
  }

  // A box that overflows can be scrolled by keyboard, and says so.
  const scrollers = new ResizeObserver((entries) => {
    for (const { target: box } of entries) {
      const wide = box.scrollWidth > box.clientWidth + 1;
      box.classList.toggle("wide", wide);
      if (wide) fill(box, { tabindex: "0", role: "group", "aria-label": "Scrolls horizontally" }, []);
    }
  });

  function reveal(node) {
    for (const fold of all("details")) fold.open ||= fold.contains(node);
    node?.scrollIntoView();
  }

  // A link into folded content unfolds it.
  const unfold = () => reveal(byId(decodeURIComponent(location.hash.slice(1))));

  // ---- A person's card ----
  const GROUPS = { control: "Control", patient: "Patient", other: "Other" };

  function aboveWords(share, who) {
    if (share === undefined || share === null) return "";
    if (share >= 100) return `higher than all ${who}`;
    return share <= 0 ? `not higher than any of the ${who}` : `higher than ${Math.min(share, 99.9).toFixed(share < 99 ? 0 : 1)} % of ${who}`;
  }

  function bar(value, limits, band, [low, high], place) {
    const x = (at) => 8 + (204 * (Math.max(low, Math.min(high, at)) - low)) / (high - low), isInside = (at) => low <= at && at <= high;
    const capsOf = (ends) => ends.filter(isInside).map((at) => `M${x(at)} 6v8`).join("");  // an end beyond the scale has no cap
    return draw("svg", { viewBox: "0 0 220 38", class: "bar", style: `--own: var(--pattern${(place % 6) + 1})`, "aria-hidden": "true" },
      band && draw("rect", { class: "band", x: x(band[0]), width: Math.max(1, x(band[2]) - x(band[0])), y: 0, height: 20 }),
      value !== null && draw("rect", { class: "r", x: Math.min(x(0), x(value)), width: Math.max(0.5, Math.abs(x(value) - x(0))), y: 5, height: 10 }),
      value !== null && limits && draw("path", { class: "interval", d: `M${x(limits[0])} 10H${x(limits[1])}${capsOf(limits)}` }),
      band && draw("path", { class: "median", d: `M${x(band[1])} 0v20` }),
      ...[0, 0.5, 1, 1.5, 2].filter(isInside).flatMap((tick) => [draw("path", { class: "axis", d: `M${x(tick)} 20v3` }), draw("text", { x: x(tick), y: 35 }, String(tick))]));
  }

  function whyTable(drivers, place, data) {
    const triples = Array.from({ length: drivers.length / 3 }, (_, k) => drivers.slice(3 * k, 3 * k + 3));  // region, part, z
    const key = draw("svg", { viewBox: "0 0 90 14", class: "why", role: "img", "aria-label": "z as a ring, the pattern's part as a bar" }, draw("circle", { class: "z", cx: 8, cy: 8, r: 4 }), draw("text", { x: 16, y: 12 }, "z"), draw("rect", { class: "r", x: 34, y: 4, width: 14, height: 8 }), draw("text", { x: 52, y: 12 }, "part"));
    const head = make("tr", {}, ...["Why: region", key, "z", "Pattern's part"].map((word, column) => make("th", { scope: "col", class: column > 1 ? "number" : "" }, word)));
    const values = triples.flatMap(([, ...two]) => two).concat(0), low = Math.min(...values), x = (value) => 5 + (80 * (value - low)) / (Math.max(...values) - low || 1);
    const rows = triples.map(([at, part, z]) => {
      const [short, full] = data.regions[at];
      const region = make("th", { scope: "row" }, full, full !== short && make("small", {}, ` ${short}`));
      const picture = draw("svg", { viewBox: "0 0 90 14", class: "why", "aria-hidden": "true", style: `--own: var(--pattern${(place % 6) + 1})` }, draw("rect", { class: "r", x: Math.min(x(0), x(part)), width: Math.max(0.5, Math.abs(x(part) - x(0))), y: 3, height: 8 }), draw("path", { class: "axis", d: `M${x(0)} 0V14` }), draw("circle", { class: "z", cx: x(z), cy: 7, r: 4 }));
      return make("tr", {}, region, make("td", {}, picture), make("td", { class: "number" }, signed(z)), make("td", { class: "number" }, signed(part)));
    });
    return make("table", { "aria-label": `Regions that explain ${data.names[place]}` }, make("thead", {}, head), make("tbody", {}, ...rows));
  }

  const limitsOf = (visit, place) => (visit.low && visit.low[place] !== null ? [visit.low[place], visit.high[place]] : null);

  function patternBlock(visit, place, data) {
    const limits = limitsOf(visit, place);
    const told = limits ? ` (${data.level} interval ${fixed(limits[0], 2)} to ${fixed(limits[1], 2)})` : "";
    const above = aboveWords(visit.above?.[place], data.reference);
    const line = make("p", {}, make("strong", {}, `${data.names[place]}: ${fixed(visit.r[place], 2)}`), told + (above ? `, ${above}` : ""));
    const drawn = bar(visit.r[place], limits, data.bands[place], data.scale, place), drivers = visit.drivers?.[place] ?? [];
    return make("div", { class: "pattern" }, make("div", {}, line, drawn), drivers.length > 0 && whyTable(drivers, place, data));
  }

  function cardOf(person, data) {
    const facts = [GROUPS[person.group], person.diagnosis, data.sites[person.site]].filter(Boolean);
    const aside = (words) => make("p", { class: "aside" }, words.join(" \u00b7 "));
    const visits = person.visits.flatMap((visit, place) => {
      const years = visit.years === undefined ? "" : `, ${fixed(visit.years, 1)} years`;
      const scores = data.scores.map(({ name, levels }, at) => [name, levels?.[visit.scores?.[at]] ?? visit.scores?.[at] ?? null]).filter(([, value]) => value !== null);
      return [
        person.visits.length > 1 && make("h5", {}, `Visit ${visit.visit ?? place + 1}${years}`),
        scores.length > 0 && aside(scores.slice(0, 6).map((pair) => pair.join(" "))),
        visit.flags && make("p", { class: "note warnings" }, `Unusual: ${visit.flags}`),
        make("div", { class: "patterns" }, ...visit.r.map((_, at) => patternBlock(visit, at, data))),
      ];
    });
    const changes = person.change?.map((change, at) => make("li", {}, changeWords(data.names[at], change)));
    return make("article", { class: "card" }, make("h4", {}, person.name), aside(facts), changes && make("ul", { class: "change" }, ...changes), ...visits);
  }

  function changeWords(name, [change, low, high, reliable]) {
    const limits = low === null ? "" : ` (${signed(low)} to ${signed(high)})`;
    const word = reliable === null ? "" : reliable ? `, reliably ${reliable > 0 ? "worse" : "better"}` : ", within scan noise";
    return `${name}, first visit to last: ${signed(change)}${limits}${word}`;
  }

  // ---- The explorer: linked figure, table and card ----
  const ORDER = ["patient", "other", "control"];  // controls last, on top: otherwise they would be hidden

  function explorer(data) {
    const counts = {};
    for (const person of data.people) {
      counts[person.group] = (counts[person.group] ?? 0) + 1;
      person.place = `${GROUPS[person.group]} ${counts[person.group]}`;  // the person's name if ids are hidden
      person.name = person.id ?? person.place;
    }
    const every = data.people.flatMap((person) => person.visits.flatMap((visit) => visit.r)).filter((value) => value !== null);
    data.scale = [Math.min(0, percentile(every, 0.002)), Math.max(1, percentile(every, 0.998))];
    const state = { data, open: data.people[data.example], filters: filtersOf(data), axes: axesOf(data), colours: coloursOf(data) };
    const form = byId("linked").querySelector("form");
    const menus = { shown: state.filters, colour: state.colours, across: state.axes, up: state.axes };
    for (const [id, options] of Object.entries(menus)) byId(id).append(...options.map(({ name }, place) => make("option", { value: place }, name)));
    byId("up").value = data.names.length > 1 ? 1 : state.axes.length - 1;
    form.addEventListener("input", () => refresh(state));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (state.people.length) select(state, state.people[0]);
    });
    byId("linked").hidden = false;
    listPeople(state);
    refresh(state);
    addEventListener("hashchange", () => follow(state));
    if (!follow(state)) byId("card").replaceChildren(cardOf(state.open, data));
  }

  function percentile(values, share) {
    const sorted = [...values].sort((a, b) => a - b);
    return sorted[Math.round(share * (sorted.length - 1))];
  }

  function filtersOf(data) {
    const filters = [
      ...Object.entries(GROUPS).map(([group, word]) => ({ name: `${word.toLowerCase()}s`, keep: (person) => person.group === group })),
      { name: "unusual people", keep: (person) => person.visits.some((visit) => visit.flags) },
      { name: "reliable change", keep: (person) => person.change?.some((one) => one[3]) },
      ...data.sites.map((site, place) => ({ name: `site ${site}`, keep: (person) => person.site === place })),
    ];
    return [{ name: "everybody", keep: () => true }, ...filters.filter((one) => data.people.some(one.keep) && !data.people.every(one.keep))];
  }

  function axesOf(data) {
    const numbers = data.scores.map((score, at) => ({ name: score.name, of: (visit) => visit.scores?.[at] ?? null, levels: score.levels })).filter((one) => one.levels === null);
    const severities = data.names.map((name, at) => ({ name, of: (visit) => visit.r[at], score: true }));
    const here = ORDER.filter((group) => data.people.some((person) => person.group === group));
    const groups = { name: "Group", of: (_, person, place) => here.indexOf(person.group) + 0.6 * ((place * 0.618) % 1) - 0.3, ticks: here.map((group) => `${GROUPS[group]}s`) };
    const years = data.people.some((person) => person.visits.some((visit) => visit.years)) ? [{ name: "Years since the first visit", of: (visit) => visit.years ?? null, time: true }] : [];
    return [...severities, ...numbers, ...years, groups];
  }

  // Dark to light, distinguishable with every common kind of colour blindness.
  const [DARK, MIDDLE, LIGHT] = ["#00224e", "#7c7b78", "#fee838"];
  const between = (share) => `color-mix(in srgb, ${share < 0.5 ? DARK : LIGHT}, ${MIDDLE} ${200 * Math.min(share, 1 - share)}%)`;

  function coloursOf(data) {
    const hue = (place) => `hsl(${Math.round(place * 137.5) % 360} 60% 45%)`;
    const levels = (name, words, of) => ({ name, of: (person) => (of(person) === null ? null : hue(of(person))), legend: words.map((word, place) => [hue(place), word]) });
    const numbers = (name, of) => {
      const known = data.people.map(of).filter((value) => value !== null);
      const [low, high] = known.length ? [percentile(known, 0.02), percentile(known, 0.98)] : [0, 1];
      const colour = (value) => between(Math.max(0, Math.min(1, (value - low) / (high - low || 1))));
      return { name, of: (person) => (of(person) === null ? null : colour(of(person))), legend: [low, (low + high) / 2, high].map((value) => [colour(value), fixed(value, 2)]) };
    };
    return [
      { name: "group", of: (person) => `var(--${person.group})`, legend: Object.entries(GROUPS).filter(([group]) => data.people.some((person) => person.group === group)).map(([group, word]) => [`var(--${group})`, `${word}s`, group]) },
      ...(data.sites.length > 1 ? [levels("site", data.sites, (person) => person.site)] : []),
      ...data.scores.map((score, at) => (score.levels === null ? numbers(score.name, (person) => person.visits[0].scores?.[at] ?? null) : levels(score.name, score.levels, (person) => person.visits[0].scores?.[at] ?? null))),
      ...data.names.map((name, at) => numbers(name, (person) => person.visits[0].r[at])),
    ];
  }

  function refresh(state) {
    const text = byId("who").value.trim(), { keep } = state.filters[byId("shown").value];
    for (const person of state.data.people) person.row.hidden = !keep(person) || !`${person.name} ${person.diagnosis ?? ""}`.toLowerCase().includes(text.toLowerCase());
    state.people = state.data.people.filter((person) => !person.row.hidden);
    const count = state.people.length;
    byId("found").textContent = count ? `${count.toLocaleString("en")} ${count === 1 ? "person" : "people"}` : `No one matches \u201c${text}\u201d.`;
    drawScatter(state);
  }

  function select(state, person) {
    state.open = person;
    try { history.replaceState(null, "", `#person=${encodeURIComponent(person.name)}`); } catch { /* a page in a frame has no address of its own */ }
    for (const link of all("a[data-person]")) link.hash = `person=${encodeURIComponent(person.place)}`;
    byId("card").replaceChildren(cardOf(person, state.data));
    mark(state);
  }

  function follow(state) {
    const id = new URLSearchParams(location.hash.slice(1)).get("person"), by = (what) => state.data.people.find((one) => one[what] === id);
    const person = by("name") ?? by("place");
    if (person) {
      select(state, person);
      reveal(byId("linked"));
    } else if (id !== null) byId("found").textContent = `There is no card for \u201c${id}\u201d.`;
    return person;
  }

  // The rows of everybody are made once: a search hides rows, and a choice marks one.
  function listPeople(state) {
    const { data } = state, table = byId("everybody");
    const facts = [["Group", (person) => GROUPS[person.group]], ["Site", (person) => data.sites[person.site] ?? ""]].slice(0, data.sites.length ? 2 : 1);
    const titles = ["Person", ...facts.map(([title]) => title)].map((title) => make("th", { scope: "col" }, title));
    const severities = data.names.map((name) => make("th", { scope: "col", class: "number", "data-before": "ascending" }, name));
    for (const person of data.people) {
      const [visit] = person.visits, name = make("button", { type: "button", class: "link" }, person.name);
      const cells = visit.r.map((value, place) => {
        const limits = limitsOf(visit, place), told = limits ? ` (${fixed(limits[0], 2)} to ${fixed(limits[1], 2)})` : "";
        return make("td", { class: "number", "data-value": value }, fixed(value, 2), make("small", {}, told));
      });
      person.row = make("tr", {}, make("th", { scope: "row" }, name), ...facts.map(([, of]) => make("td", {}, of(person))), ...cells);
      person.row.addEventListener("click", () => select(state, person));
    }
    table.append(make("thead", {}, make("tr", {}, ...titles, ...severities)), make("tbody", {}, ...data.people.map((person) => person.row)));
    prepareSort(table);
  }

  const SHAPES = { control: "m-3-3 6 6m0-6-6 6", patient: "m-3.5 0a3.5 3.5 0 1 1 7 0 3.5 3.5 0 1 1-7 0z", other: "m-3-3h6v6h-6z" };
  const shapeOf = (group, own, x, y) => draw("path", { class: group, style: `--own: ${own}`, d: `M${x} ${y}${SHAPES[group]}` });

  function ticksOf(low, high) {
    const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough);
    const first = Math.ceil(low / step);
    return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, k) => Number(((first + k) * step).toPrecision(6)));
  }

  function drawScatter(state) {
    const { data } = state, [across, up] = ["across", "up"].map((id) => state.axes[byId(id).value]);
    const colour = state.colours[byId("colour").value];
    const limits = [across, up].map((axis) => {
      const values = data.people.flatMap((person, place) => person.visits.map((visit) => axis.of(visit, person, place))).filter((value) => value !== null);
      const ends = [values.reduce((a, b) => Math.min(a, b), axis.score ? 0 : Infinity), values.reduce((a, b) => Math.max(a, b), axis.score ? 1 : -Infinity)];
      const margin = 0.04 * (ends[1] - ends[0]) || 1;
      return [ends[0] - margin, ends[1] + margin];
    });
    const x = (value) => 72 + (508 * (value - limits[0][0])) / (limits[0][1] - limits[0][0]);
    const y = (value) => 450 - (440 * (value - limits[1][0])) / (limits[1][1] - limits[1][0]);
    const svg = draw("svg", { viewBox: "0 0 600 500", class: "scatter", role: "group", "aria-label": `${up.name} against ${across.name}; arrow keys move from person to person` });
    for (const [axis, at, [low, high], isUp] of [[across, x, limits[0], false], [up, y, limits[1], true]]) {
      for (const tick of [...(axis.ticks?.keys() ?? ticksOf(low, high))].filter((one) => low <= one && one <= high)) {
        const words = axis.ticks ? axis.ticks[tick] : minus(String(tick));
        svg.append(draw("path", { class: "grid", d: isUp ? `M72 ${at(tick)}H580` : `M${at(tick)} 10V450` }), draw("text", isUp && axis.ticks ? { x: 56, y: at(tick), "text-anchor": "middle", transform: `rotate(-90 56 ${at(tick)})` } : isUp ? { x: 66, y: at(tick) + 4, "text-anchor": "end" } : { x: at(tick), y: 468, "text-anchor": "middle" }, words));
      }
    }
    svg.append(draw("text", { x: 320, y: 492, "text-anchor": "middle" }, across.name), draw("text", { x: 20, y: 230, "text-anchor": "middle", transform: "rotate(-90 20 230)" }, up.name));
    const placed = data.people.map((person, place) => [person, across.of(person.visits[0], person, place), up.of(person.visits[0], person, place), place]);
    const points = placed.filter(([person, a, b]) => !person.row.hidden && a !== null && b !== null && colour.of(person) !== null).sort((a, b) => a[1] - b[1]);
    const pathOf = (person, place) => person.visits.map((visit) => [across.of(visit, person, place), up.of(visit, person, place)]).filter(([a, b]) => a !== null && b !== null).map(([a, b]) => `${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("L");
    if (byId("paths")?.checked || across.time || up.time) svg.append(draw("path", { class: "path", d: points.filter(([person]) => person.visits.length > 1).map(([person, , , place]) => `M${pathOf(person, place)}`).join("") }));
    state.shapes = points.map(([person, a, b]) => {
      const shape = shapeOf(person.group, colour.of(person), x(a), y(b));
      const words = `${person.name}, ${person.group}: ${across.name} ${fixed(a, 2)}, ${up.name} ${fixed(b, 2)}`;
      fill(shape, { tabindex: "-1", role: "button", "aria-label": words }, [draw("title", {}, words)]);
      shape.addEventListener("click", () => select(state, person));
      return { shape, person, a: x(a), b: y(b) };
    });
    state.pathOf = (person) => pathOf(person, data.people.indexOf(person));
    svg.append(...[...state.shapes].sort((a, b) => ORDER.indexOf(a.person.group) - ORDER.indexOf(b.person.group)).map((one) => one.shape));
    svg.addEventListener("keydown", (event) => moveIn(event, state));
    byId("scatter").replaceChildren(svg);
    byId("legend").replaceChildren(...colour.legend.slice(0, 14).map(([own, words, group]) => {
      const key = draw("svg", { viewBox: "0 0 12 12", class: "key", "aria-hidden": "true" }, shapeOf(group ?? "patient", own, 6, 6));
      return make("span", {}, key, words);
    }), colour.legend.length > 14 ? make("span", {}, `and ${colour.legend.length - 14} more`) : "");
    mark(state);
  }

  function mark(state) {
    const svg = byId("scatter").firstElementChild, box = byId("everybody").parentElement;
    for (const person of state.data.people) person.row.classList.toggle("chosen", person === state.open);
    box.scrollTop = state.open.row.offsetTop - box.clientHeight / 2;
    svg.querySelectorAll(".open").forEach((node) => node.remove());
    const own = state.shapes.find((one) => one.person === state.open);
    for (const one of state.shapes) one.shape.setAttribute("tabindex", one === (own ?? state.shapes[0]) ? "0" : "-1");
    if (!own) return;
    if (state.open.visits.length > 1) svg.append(draw("path", { class: "path open", d: `M${state.pathOf(state.open)}` }));
    svg.append(draw("circle", { class: "open", cx: own.a, cy: own.b, r: 9 }));
  }

  function moveIn(event, state) {
    const here = state.shapes.findIndex((one) => one.shape === event.target), own = state.shapes[here];
    const upwards = [...state.shapes].sort((a, b) => b.b - a.b), level = upwards.indexOf(own);
    const steps = { Enter: own, " ": own, ArrowRight: state.shapes[here + 1], ArrowLeft: state.shapes[here - 1], ArrowUp: upwards[level + 1], ArrowDown: upwards[level - 1], Home: state.shapes[0], End: state.shapes.at(-1) };
    if (!own || !(event.key in steps)) return;
    event.preventDefault();
    const { person, shape } = steps[event.key] ?? own;  // at an end, there is no next
    select(state, person);
    shape.focus();
  }

  // ==== Only on pages from the server ====

  const pause = (milliseconds) => new Promise((resume) => setTimeout(resume, milliseconds));

  async function fetchPage(address) {
    const answer = await fetch(address);
    if (answer.status === 202) {  // it takes seconds
      await pause(500);
      return fetchPage(address);
    }
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  }

  async function load(box, address) {
    const page = await fetchPage(address);
    box.replaceChildren(page.querySelector(".part"));
    prepare(box);
  }

  // ---- Files dropped or chosen ----
  async function upload(file, zone) {
    const said = zone.querySelector("[data-said]");
    said.textContent = `Copying ${file.name} \u2026`;
    try {
      if (file.size > MOST_BYTES) throw new Error(`${file.name} is larger than 512 MB. Copy it into the folder yourself.`);
      const answer = await fetch(`/upload?name=${encodeURIComponent(file.name)}`, { method: "PUT", body: file });
      const told = await answer.json();
      if (!answer.ok) throw new Error(told.refused);
      const here = new URLSearchParams(location.search);
      here.set(/\.safetensors$/i.test(told.name) ? "model" : "table", told.name);
      location.href = `${location.pathname === "/apply" ? "/apply" : "/table"}?${here}`;
    } catch (error) {
      said.textContent = error.message;
    }
  }

  // ---- The table: every menu and button reloads the same part of the page ----
  async function check(box, address, focused) {
    box.inert = true;  // the next choice must start from this answer
    await load(box, address);
    box.inert = false;
    const query = box.querySelector(".part")?.dataset.query;
    if (query) history.replaceState(null, "", `/table?${query}`);
    for (const later of all("[data-later]", box)) load(later, later.dataset.later).catch(() => {});  // the server is gone
    const again = focused === undefined ? null : byId(focused) ?? box;
    if (again?.closest("tr.alike") && byId("unfolded")) byId("unfolded").checked = true;
    if (again) again.focus({ preventScroll: true });
  }

  function change(node, asked) {
    const box = byId("checked"), choices = `${node.closest("[data-query]").dataset.query}&${asked}`;
    if (box) check(box, `/table/checked?${choices}`, node.id);
    else location.href = `${location.pathname}?${choices}`;
  }

  function filterRows(input) {
    const wanted = input.value.trim().toLowerCase(), rows = [...byId(input.dataset.filter).tBodies[0].rows];
    for (const row of rows) row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
    const count = rows.filter((row) => !row.hidden).length;
    input.closest(".choices").querySelector("[data-filtered]").textContent = wanted ? `${count} found` : "";
  }

  // ---- Training: time needed and progress ----
  const addressOf = (form) => `/train?${new URLSearchParams(new FormData(form))}`;

  function planAgain(form) {
    let timer;
    form.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(async () => {
        const fresh = (await fetchPage(addressOf(form))).getElementById("planned"), shown = byId("planned");
        if (!fresh) return;
        fresh.querySelector("details")?.toggleAttribute("open", shown.querySelector("details[open]") !== null);
        shown.replaceWith(fresh);
        prepare(fresh);
        form.querySelector("[data-start]").disabled = fresh.querySelector(".banner") !== null;
      }, 300);
    });
    // The server reads the choices from the address.
    form.addEventListener("submit", () => { form.action = addressOf(form); });
  }

  async function watch(box) {
    await pause(1000);
    const fresh = (await fetchPage(location.href)).getElementById("training");
    if (!fresh) return location.reload();
    if (fresh.innerHTML !== box.innerHTML) box.replaceChildren(...fresh.childNodes);
    watch(box);
  }

  // ---- Severity: one slider moves the brains of all cards ----
  function doseAt(points, severity) {
    let [low, from] = [0, 0];
    for (const [at, value] of points) {
      if (severity <= at) return from + ((value - from) * (severity - low)) / (at - low);
      [low, from] = [at, value];
    }
    return from;
  }

  function prepareSlider(slider) {
    const data = JSON.parse(byId("doses").textContent), line = slider.closest(".slider");
    const brains = all(".pattern-card").flatMap((card) => all("svg.brain:not(:has(.amount))", card).map((svg, place) => {
      const regions = data.patterns[card.dataset.pattern], { pieces, limit } = data.brains[card.dataset.pattern][place];
      const points = Object.fromEntries(Object.entries(regions).map(([name, doses]) => [name, Object.entries(doses).map(([at, value]) => [Number(at), value]).sort((a, b) => a[0] - b[0])]));
      // Grey and hatched pieces have no colour at any severity.
      const uses = all("use", svg).map((use, at) => [use, pieces[at].filter((name) => points[name])]).filter(([use, names]) => names.length && use.hasAttribute("fill-opacity"));
      return { points, limit, uses };
    }));
    line.hidden = false;
    slider.addEventListener("input", () => {
      const severity = Number(slider.value);
      line.querySelector("output").textContent = severity.toFixed(2);
      line.querySelector("[data-share]").textContent = severity === 1 ? "the largest change learned" : `${Math.round(100 * severity)} % of the largest change learned`;
      for (const { points, limit, uses } of brains) {
        for (const [use, names] of uses) {
          const values = names.map((name) => doseAt(points[name], severity));
          const mean = values.reduce((a, b) => a + b, 0) / values.length / limit;
          use.setAttribute("class", mean < 0 ? "lower" : "higher");
          use.setAttribute("fill-opacity", Math.min(1, Math.abs(mean)).toFixed(3));
          const title = use.querySelector("title");
          if (title) title.textContent = names.map((name, k) => `${data.names[name] ?? name} (${name}): ${signed(values[k])} sd`).join("; ");
        }
      }
    });
  }

  // ---- One person: a row, or names and numbers, pasted from a spreadsheet ----
  function cellsOf(text) {
    const border = ["\t", ";", ","].find((one) => text.includes(one)) ?? /\s+/;
    const rows = text.trim().split(/\r?\n/).map((line) => line.split(border).map((cell) => cell.trim().replace(/^"(.*)"$/, "$1")));
    // Spreadsheets in many countries write 0,45; if every comma could separate thousands, as in 3,412, none is a decimal.
    const clear = rows.flat().some((cell) => /^[+-]?\d+,\d+$/.test(cell) && !/^[+-]?[1-9]\d?\d?,\d{3}$/.test(cell));
    return clear ? rows.map((cells) => cells.map((cell) => cell.replace(/^([+-]?\d+),(\d+)$/, "$1.$2"))) : rows;
  }

  function paste(area) {
    const inputs = all("[data-column]", area.form), regions = inputs.filter((input) => "region" in input.dataset);
    const byName = new Map(inputs.map((input) => [input.dataset.column, input]));
    const rows = cellsOf(area.value), [heads, row] = rows, cells = rows.flat();
    const isColumn = rows.every((one) => one.length === 2) && !byName.has(heads[1]);
    const isTable = !isColumn && row && heads.some((head) => byName.has(head));
    const bare = cells.every((cell) => NUMBER.test(cell));
    const pairs = bare && cells.length === regions.length ? regions.map((input, place) => [input.dataset.column, cells[place]])
      : isColumn ? rows
      : isTable ? heads.map((head, place) => [head, row[place] ?? ""])
      : [];
    // Nothing pasted before, for another person, stays.
    if (area.value.trim()) inputs.forEach((input) => { input.value = input.defaultValue ?? ""; });
    const filled = pairs.filter(([name, text]) => {
      const input = byName.get(name);
      if (!input || text === "") return false;
      input.value = text;
      if (!input.value && NUMBER.test(text)) input.value = String(Number(text));  // a code written as 1.0
      return regions.includes(input) && input.value !== "";
    }).length;
    const hint = filled ? "" : `${bare ? `; ${cells.length} numbers were pasted` : ""}. Copy the header row as well.`, first = isTable && rows.length > 2 ? `, from the first of ${rows.length - 1} rows` : "";
    document.querySelector("[data-pasted]").textContent = area.value.trim() ? `${filled} of ${regions.length} regions filled in${first}${hint}` : "";
  }

  // ---- Start ----
  // For the page itself, and for each part loaded later.
  function prepare(within) {
    all("table.data", within).forEach(prepareTable);
    all("figure[data-name]", within).forEach(prepareFigure);
    all(".scroller", within).forEach((box) => scrollers.observe(box));
    all("button[data-copy]", within).forEach((button) => button.removeAttribute("hidden"));
    on("button[data-copy]", "click", (button) => copyText(byId(button.dataset.copy), button), within);
    on("[data-change]", "click", (node) => change(node, node.dataset.change), within);
    on("[data-change-name]", "change", (node) => change(node, `${node.dataset.changeName}=${encodeURIComponent(node.value)}`), within);
    on("[data-filter]", "input", filterRows, within);
  }

  prepare(document);
  // Files can also be dropped onto an input.
  on("[data-file]", "change", (input) => input.files[0] && upload(input.files[0], input.closest(".drop")));
  for (const name of ["dragenter", "dragleave", "drop"]) on("[data-file]", name, (input) => input.classList.toggle("over", name === "dragenter"));
  on("[data-submit]", "change", (node) => node.form.requestSubmit());
  on("[data-paste]", "input", paste);
  on("form[data-busy]", "submit", (form) => {
    form.querySelector("[data-said]").textContent = form.dataset.busy;
    form.querySelector("button").disabled = true;
  });
  all("[data-live]").forEach(planAgain);
  on("[data-print]", "click", () => {
    document.body.classList.add("one-card");
    addEventListener("afterprint", () => document.body.classList.remove("one-card"), { once: true });
    print();
  });
  // What a reader needs on paper is unfolded.
  addEventListener("beforeprint", () => {
    const folded = all("details:is(#methods, #limits, #glossary):not([open])");
    folded.forEach((node) => { node.open = true; });
    addEventListener("afterprint", () => folded.forEach((node) => { node.open = false; }), { once: true });
  });
  // A page that takes a while is reloaded; without a script, an address that names a person would not be.
  if (document.querySelector("main > .busy")) setTimeout(() => location.reload(), 1000);
  all("#checked").forEach((box) => check(box, box.dataset.source));
  all("#training").forEach(watch);
  all("#slider").forEach(prepareSlider);
  all("#people-data").forEach((script) => explorer(JSON.parse(script.textContent)));
  // The contents of a report mark the section being read.
  const contents = all('header.bar a[href^="#"]'), isPassed = (link) => byId(link.hash.slice(1)).getBoundingClientRect().top < innerHeight / 3;
  addEventListener("scroll", () => contents.forEach((link) => link.setAttribute("aria-current", String(link === contents.findLast(isPassed)))), { passive: true });
  addEventListener("hashchange", unfold);
  unfold();
})();
