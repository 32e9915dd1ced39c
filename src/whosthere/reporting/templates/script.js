"use strict";
// The page is complete without this: it chooses what is shown, sorts and filters tables, and says
// values where the pointer rests.
(() => {
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];

  // Choosing a protection and an attack
  const chooser = document.querySelector(".chooser");
  const setting = document.getElementById("choose-setting");
  const attack = document.getElementById("choose-attack");
  const fits = (value, chosen) => !value || chosen === "all" || value === chosen;
  const show = () => {
    for (const panel of all(".panel")) {
      panel.hidden = !(fits(panel.dataset.setting, setting.value) && fits(panel.dataset.attack, attack.value));
    }
    const name = attack.value === "all" ? null : attack.selectedOptions[0].textContent;
    for (const series of all("g[data-attack]")) {
      series.classList.toggle("faded", name !== null && ![name, "ceiling"].includes(series.dataset.attack));
    }
  };
  if (chooser) {
    chooser.hidden = false;
    setting.addEventListener("change", show);
    attack.addEventListener("change", show);
    show();
  }

  // Choosing a measure
  for (const pictures of all(".pictures")) {
    const each = all(".picture", pictures);
    if (each.length < 2) continue;
    const label = document.createElement("label");
    label.className = "filter";
    const select = document.createElement("select");
    for (const [i, picture] of each.entries()) select.add(new Option(picture.dataset.measure, String(i)));
    const choose = () => each.forEach((picture, i) => { picture.hidden = String(i) !== select.value; });
    select.addEventListener("change", choose);
    label.append("Measure ", select);
    together(label, pictures);
    choose();
  }
  function together(control, controlled) {
    const box = document.createElement("div");
    controlled.before(box);
    box.append(control, controlled);
  }

  // Tables
  const value = (row, column) => {
    const sort = row.cells[column].dataset.sort;
    return sort === undefined ? null : (sort !== "" && !Number.isNaN(Number(sort)) ? Number(sort) : sort);
  };
  const compare = (a, b, sign) => {
    if (a === null || b === null) return (a === null) - (b === null);
    const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
    return sign * order;
  };
  for (const table of all("table")) {
    const body = table.tBodies[0];
    if (!table.tHead || body.rows.length < 2) continue;
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const words = head.querySelector(".words");
      if (!words) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...words.childNodes);
      words.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of heads) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].map((row) => [value(row, column), row]);
        rows.sort(([a], [b]) => compare(a, b, down ? -1 : 1));
        body.append(...rows.map(([, row]) => row));
      });
    });
    if (body.rows.length < 6) continue;
    const box = document.createElement("div");
    box.className = "filter";
    const label = document.createElement("label");
    const input = document.createElement("input");
    const output = document.createElement("output");
    input.type = "search";
    label.append("Filter rows ", input);
    box.append(label, output);
    together(box, table.parentElement);
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of body.rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += !row.hidden;
      }
      output.textContent = `${shown} of ${body.rows.length} rows`;
    });
  }

  // Values where the pointer rests
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const said = (element) => {
    for (let at = element; at && at.tagName !== "svg"; at = at.parentElement) {
      const title = at.querySelector(":scope > title");
      if (title) { at.dataset.said = title.textContent; title.remove(); }
      if (at.dataset && at.dataset.said) return at.dataset.said;
    }
    return null;
  };
  document.addEventListener("pointermove", (event) => {
    const inside = event.target instanceof Element && event.target.closest("svg.chart");
    const text = inside ? said(event.target) : null;
    tip.hidden = text === null;
    if (text === null) return;
    tip.textContent = text;
    const width = tip.offsetWidth, height = tip.offsetHeight;
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - width - 8))}px`;
    tip.style.top = `${event.clientY + 16 + height > innerHeight ? event.clientY - height - 8 : event.clientY + 16}px`;
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });

  // A link into what is folded opens it
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest('a[href^="#"]');
    const target = link && document.getElementById(link.hash.slice(1));
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  });

  // Paper shows all details
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details:not([open])");
    for (const one of closed) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of closed) one.open = false; });
})();
