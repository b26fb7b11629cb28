"use strict";
// What comes from the server is escaped there; what comes from tables goes into the page as text, never as HTML.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const MOST_BYTES = 512 * 2 ** 20;
  const byId = (id) => document.getElementById(id);
  const all = (what, within = document) => [...within.querySelectorAll(what)];

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }
  const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
  const draw = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
  const signed = (value) => `${value > 0 ? "+" : ""}${value.toFixed(2)}`.replace("-", "\u2212");

  async function fetchPart(address) {
    const answer = await fetch(address, { headers: { accept: "text/html" } });
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  }

  // ---- Files that are dropped or chosen ----
  async function upload(file, zone) {
    const said = zone.querySelector("[data-said]");
    if (file.size > MOST_BYTES) {
      said.textContent = `${file.name} is larger than 512 MB. Put it into the folder yourself.`;
      return;
    }
    said.textContent = `Copying ${file.name} \u2026`;
    try {
      const answer = await fetch(`/upload?name=${encodeURIComponent(file.name)}`, { method: "PUT", body: file });
      const told = await answer.json();
      if (!answer.ok) throw new Error(told.refused);
      const here = new URLSearchParams(location.search);
      const model = /\.safetensors$/i.test(told.name) ? told.name : here.get("model");
      if (model) here.set("model", model);
      if (model !== told.name) here.set("table", told.name);
      location.href = `${location.pathname === "/apply" ? "/apply" : "/table"}?${here}`;
    } catch (error) {
      said.textContent = error.message;
    }
  }

  function prepareDrop(zone) {
    zone.querySelector("[data-file]").addEventListener("change", (event) => event.target.files[0] && upload(event.target.files[0], zone));
    for (const [name, over] of [["dragover", true], ["dragleave", false], ["drop", false]]) {
      zone.addEventListener(name, (event) => {
        event.preventDefault();
        zone.classList.toggle("over", over);
        if (name === "drop" && event.dataTransfer.files[0]) upload(event.dataTransfer.files[0], zone);
      });
    }
  }

  // ---- The table: every menu and button asks for the same part of the page once more ----
  async function check(box, address, focused) {
    box.classList.add("stale");
    box.setAttribute("aria-busy", "true");
    box.inert = true;  // what is chosen next begins from what this gives
    const part = await fetchPart(address);
    const fresh = part.querySelector(".part") ?? part.querySelector("main");
    box.replaceChildren(document.adoptNode(fresh));
    box.classList.remove("stale");
    box.removeAttribute("aria-busy");
    box.inert = false;
    const query = box.querySelector(".part")?.dataset.query;
    if (query) history.replaceState(null, "", `/table?${query}`);
    prepare(box);
    const again = focused && byId(focused);
    if (again) again.focus({ preventScroll: true });
  }

  function change(node, asked) {
    const box = byId("checked"), holder = node.closest("[data-query]");
    if (!holder) return;
    if (box) check(box, `/table/checked?${holder.dataset.query}&${asked}`, node.id);
    else location.href = `${location.pathname}?${holder.dataset.query}&${asked}`;
  }

  function filterRows(input) {
    const wanted = input.value.trim().toLowerCase(), rows = [...byId(input.dataset.filter).tBodies[0].rows];
    for (const row of rows) row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
    const count = rows.filter((row) => !row.hidden).length;
    input.form.querySelector("[data-filtered]").textContent = wanted ? `${count} found` : "";
  }

  async function copyText(button) {
    const words = button.textContent;
    await navigator.clipboard.writeText(byId(button.dataset.copy).textContent).catch(() => getSelection().selectAllChildren(byId(button.dataset.copy)));
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = words; }, 2000);
  }

  // ---- Training: what it would take, and how far it is ----
  function planAgain(form) {
    let timer;
    form.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(async () => {
        const part = await fetchPart(`/train?${new URLSearchParams(new FormData(form))}`);
        const fresh = part.getElementById("planned");
        if (!fresh) return;
        const open = byId("planned").querySelector("details")?.open;
        byId("planned").replaceWith(document.adoptNode(fresh));
        if (open) byId("planned").querySelector("details").open = true;
        prepare(byId("planned"));
        form.querySelector("[data-start]").disabled = Boolean(byId("planned").querySelector(".banner"));
      }, 300);
    });
    // What is chosen goes into the address; there is nothing else to send.
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const sender = make("form", { method: "post", action: `/train?${new URLSearchParams(new FormData(form))}` });
      document.body.append(sender);
      sender.submit();
    });
  }

  const inWords = (seconds) => (seconds < 60 ? `${Math.max(1, Math.round(seconds))} s` : seconds < 3600 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`);

  function drawAgreement(rows) {
    const x = (value) => 150 + (430 * (value - 0.5)) / 0.5, height = 34 * rows.length + 46;
    const svg = draw("svg", { viewBox: `0 0 600 ${height}`, class: "agreed", role: "img" });
    const words = [];
    rows.forEach((row, place) => {
      const y = 20 + 34 * place;
      const value = row.value === null ? "" : row.value.toFixed(3);
      words.push(`${row.n_patterns} patterns: ${row.n_models} trainings, agreement ${value || "not known"}${row.threshold === null ? "" : `, threshold ${row.threshold.toFixed(3)}`}`);
      svg.append(draw("text", { x: 0, y: y + 5 }, `${row.n_patterns} patterns, ${row.n_models} done`));
      svg.append(draw("path", { class: "axis", d: `M${x(0.5)} ${y}H${x(1)}` }));
      if (row.threshold !== null) svg.append(draw("path", { class: "limit", d: `M${x(row.threshold)} ${y - 12}v24` }));
      if (row.value !== null) {
        svg.append(draw("circle", { class: "dot", cx: x(Math.max(0.5, row.value)), cy: y, r: 7 }));
        svg.append(draw("text", { x: x(Math.max(0.5, row.value)), y: y - 10, "text-anchor": "middle" }, value));
      }
    });
    const bottom = 34 * rows.length + 18;
    for (const [at, word, anchor] of [[0.5, "0.5: chance", "middle"], [1, "1: the same", "end"]]) svg.append(draw("text", { x: x(at), y: bottom + 14, "text-anchor": anchor }, word));
    svg.setAttribute("aria-label", words.join("; "));
    const dashed = make("p", { class: "aside" }, "Dot: agreement of the trainings that have ended. Dashed: threshold, which cohorts without disease hardly reach.");
    return [svg, dashed];
  }

  function watch(box) {
    const source = new EventSource(`/events?run=${encodeURIComponent(box.dataset.run)}`);
    source.addEventListener("message", (event) => {
      const now = JSON.parse(event.data);
      if (now.state !== "running") {
        source.close();
        location.reload();
        return;
      }
      box.querySelector("[data-stage]").textContent = now.stage;
      const bar = box.querySelector("progress");
      if (now.share > 0) bar.value = now.share; else bar.removeAttribute("value");
      const numbers = now.share > 0 ? [`${Math.round(100 * now.share)} %`] : [];
      if (now.rate) numbers.push(`${Math.round(now.rate).toLocaleString("en")} steps a second`);
      if (now.left) numbers.push(`about ${inWords(now.left)} left, and then the report`);
      box.querySelector("[data-numbers]").textContent = numbers.join(" \u00b7 ");
      if (now.agreed.length) box.querySelector("[data-agreement]").replaceChildren(...drawAgreement(now.agreed));
    });
  }

  // ---- Severity: one slider moves brains and regions ----
  function doseAt(points, severity) {
    let [low, from] = [0, 0];
    for (const [at, value] of points) {
      if (severity <= at) return from + ((value - from) * (severity - low)) / (at - low);
      [low, from] = [at, value];
    }
    return from;
  }

  function prepareSlider(slider) {
    const data = JSON.parse(byId("doses").textContent);
    const slides = all(".slide").map((box) => {
      const brain = data.brains[box.dataset.place], regions = data.patterns[box.dataset.pattern];
      const points = Object.fromEntries(Object.entries(regions).map(([name, doses]) => [name, Object.entries(doses).map(([at, value]) => [Number(at), value]).sort((a, b) => a[0] - b[0])]));
      const last = (name) => points[name].at(-1)[1];
      const top = Object.keys(points).sort((a, b) => Math.abs(last(b)) - Math.abs(last(a))).slice(0, data.shown);
      const uses = box.querySelector("svg.brain") ? all("use", box) : [];
      const titles = uses.map((use) => use.querySelector("title"));
      return { box, brain, points, top, uses, titles };
    });
    const move = () => {
      const severity = Number(slider.value);
      byId("severity").querySelector("output").textContent = severity.toFixed(2);
      for (const slide of slides) {
        slide.uses.forEach((use, place) => {
          const names = (slide.brain.pieces[place] ?? []).filter((name) => slide.points[name]);
          if (!names.length) return;
          const values = names.map((name) => doseAt(slide.points[name], severity));
          const mean = values.reduce((a, b) => a + b, 0) / values.length / slide.brain.limit;
          use.setAttribute("class", mean < 0 ? "lower" : "higher");
          use.setAttribute("fill-opacity", Math.sqrt(Math.min(1, Math.abs(mean))).toFixed(3));
          if (slide.titles[place]) slide.titles[place].textContent = names.map((name, k) => `${data.names[name] ?? name} (${name}): ${signed(values[k])}`).join("; ");
        });
        slide.box.querySelector("[data-regions]").replaceChildren(regionBars(slide, severity, data));
      }
    };
    slider.addEventListener("input", move);
    move();
  }

  function regionBars({ points, top }, severity, data) {
    const [low, high] = data.ends, x = (value) => 225 + (230 * (value - low)) / (high - low || 1), height = 22 * top.length + 4;
    const svg = draw("svg", { viewBox: `0 0 520 ${height}`, class: "regions", role: "img" });
    const words = top.map((name, place) => {
      const value = doseAt(points[name], severity), y = 22 * place + 3, full = data.names[name] ?? name;
      svg.append(draw("text", { x: 0, y: y + 13 }, full.length > 32 ? `${full.slice(0, 31)}\u2026` : full));
      svg.append(draw("rect", { class: value < 0 ? "lower" : "higher", x: Math.min(x(0), x(value)), width: Math.max(0.5, Math.abs(x(value) - x(0))), y, height: 15 }, draw("title", {}, `${full} (${name})`)));
      svg.append(draw("text", { x: 520, y: y + 13, "text-anchor": "end" }, signed(value)));
      return `${full} ${signed(value)}`;
    });
    svg.append(draw("path", { class: "zero", d: `M${x(0)} 0V${height}` }));
    svg.setAttribute("aria-label", `At severity ${severity.toFixed(2)}: ${words.join(", ")}`);
    return svg;
  }

  // ---- One person: numbers that are pasted ----
  function paste(area) {
    area.addEventListener("input", () => {
      const inputs = all("[data-region]"), words = area.value.trim().split(/[\s,;]+/).filter(Boolean);
      const numbers = words.filter((word) => !Number.isNaN(Number(word)));
      let filled = 0;
      if (numbers.length === words.length) {
        words.slice(0, inputs.length).forEach((word, place) => { inputs[place].value = word; filled += 1; });
      } else {
        const byName = new Map(inputs.map((input) => [input.dataset.region, input]));
        words.forEach((word, place) => {
          if (byName.has(word) && !Number.isNaN(Number(words[place + 1]))) { byName.get(word).value = words[place + 1]; filled += 1; }
        });
      }
      document.querySelector("[data-pasted]").textContent = words.length ? `${filled} of ${inputs.length} regions filled in` : "";
    });
  }

  // What is wider than its place can be scrolled by keyboard, and says so.
  function markWide() {
    for (const box of all(".scroller:not(.list)")) {
      const wide = box.scrollWidth > box.clientWidth + 1;
      box.classList.toggle("wide", wide);
      if (wide) fill(box, { tabindex: "0", role: "group", "aria-label": "Scrolls sideways" }, []);
    }
  }

  function prepare(within) {
    for (const node of all("[data-change]", within)) node.addEventListener("click", () => change(node, node.dataset.change));
    for (const node of all("[data-change-name]", within)) node.addEventListener("change", () => change(node, `${node.dataset.changeName}=${encodeURIComponent(node.value)}`));
    for (const node of all("[data-filter]", within)) {
      node.addEventListener("input", () => filterRows(node));
      node.form.addEventListener("submit", (event) => event.preventDefault());
    }
    for (const node of all("button[data-copy]", within)) node.addEventListener("click", () => copyText(node));
    markWide();
  }

  prepare(document);
  addEventListener("resize", markWide);
  all("[data-drop]").forEach(prepareDrop);
  all("[data-submit]").forEach((node) => node.addEventListener("change", () => node.form.requestSubmit()));
  all("[data-live]").forEach(planAgain);
  all("[data-paste]").forEach(paste);
  all("form[data-busy]").forEach((form) => form.addEventListener("submit", () => {
    const also = form.querySelector("[data-also]");
    if (also?.checked) form.action += `&${also.dataset.also}`;
    form.querySelector("[data-said]").textContent = form.dataset.busy;
    form.querySelector("button").disabled = true;
  }));
  document.querySelector("[data-print]")?.addEventListener("click", () => {
    document.body.classList.add("one-card");
    addEventListener("afterprint", () => document.body.classList.remove("one-card"), { once: true });
    print();
  });
  if (byId("checked")) check(byId("checked"), byId("checked").dataset.source);
  if (byId("training")) watch(byId("training"));
  if (byId("slider")) prepareSlider(byId("slider"));
})();
