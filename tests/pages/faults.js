// Every control has a name, ids are there once, there is one h1, and words can be told from what is behind them.
() => {
  const faults = [], ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  for (const id of new Set(ids.filter((id, place) => ids.indexOf(id) !== place))) faults.push(`id ${id} twice`);
  if (document.querySelectorAll("h1").length !== 1) faults.push("not one h1");
  for (const one of document.querySelectorAll("input:not([type=hidden]), select, textarea, button, a[href], iframe")) {
    const name = one.getAttribute("aria-label") || one.title || [...one.labels ?? []].map((label) => label.textContent).join("") || one.textContent;
    if (!name.trim()) faults.push(`no name: ${one.outerHTML.slice(0, 80)}`);
  }
  const colour = (text) => (text.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((one) => one / 255).map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)).reduce((sum, one, k) => sum + one * [0.2126, 0.7152, 0.0722][k], 0);
  for (const one of document.querySelectorAll("main *, header *, footer *")) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || one.closest("svg, script, option, details:not([open]) > :not(summary)") || !one.checkVisibility() || one.disabled) continue;
    let behind = one, back = [0, 0, 0, 0];
    while (behind && !(back = colour(getComputedStyle(behind).backgroundColor), back[3] ?? 1)) behind = behind.parentElement;
    const [a, b] = [light(colour(getComputedStyle(one).color)), light(back)].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) faults.push(`hard to read: ${one.tagName} ${one.textContent.trim().slice(0, 40)}`);
  }
  if (document.documentElement.scrollWidth > innerWidth) faults.push(`wider than the window: ${document.documentElement.scrollWidth}`);
  return faults;
}
