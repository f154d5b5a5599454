"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const byName = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Colours and fonts of the page, for plots.
  const themed = (figure) => {
    const [text, muted, line, surface] = ["--text", "--muted", "--line", "--surface"].map(byName);
    const axis = { gridcolor: line, linecolor: line, zerolinecolor: line, tickcolor: line };
    const layout = {
      ...figure.layout,
      height: figure.height,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: text },
      hoverlabel: { bgcolor: surface, bordercolor: muted, font: { color: text }, align: "left" },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: muted, activecolor: text },
    };
    for (const name of ["xaxis", "yaxis"]) {
      if (layout[name]) layout[name] = { ...axis, ...layout[name] };
    }
    const data = figure.data.map((trace) => {
      if (!trace.marker || !trace.marker.line) return trace;
      const marker = { ...trace.marker, line: { color: surface, ...trace.marker.line } };
      return { ...trace, marker };
    });
    return { data, layout };
  };
  // Only these buttons: plotly's own choice has one that sends the plot to a service.
  const buttons = [["toImage"], ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]];
  const config = { responsive: true, displaylogo: false, displayModeBar: "hover", showSendToCloud: false, modeBarButtons: buttons };
  const drawn = new Set();
  const draw = (place) => {
    const { data, layout } = themed(figures[place.dataset.figure]);
    if (!drawn.has(place)) place.replaceChildren();
    drawn.add(place);
    // In a narrow window the buttons would lie on the legend; two fingers and a double tap do as well.
    const bare = figures[place.dataset.figure].buttons === false || place.clientWidth < 700;
    const own = bare ? { ...config, displayModeBar: false } : config;
    return Plotly.react(place, data, layout, own).then(() => place.setAttribute("data-drawn", ""));
  };
  document.documentElement.classList.add("scripted");
  // A plot is drawn when it comes near the window: the page opens at once.
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      near.unobserve(entry.target);
      draw(entry.target);
    }
  }, { rootMargin: "400px" });
  document.querySelectorAll(".plot").forEach((place) => near.observe(place));
  dark.addEventListener("change", () => drawn.forEach(draw));

  const ways = document.getElementById("ways");
  if (ways) {
    ways.hidden = false;
    const buttons = [...ways.querySelectorAll("button")];
    for (const button of buttons) {
      button.addEventListener("click", () => {
        for (const one of buttons) one.setAttribute("aria-pressed", String(one === button));
        figures.icicle.data.forEach((trace, at) => { trace.visible = String(at) === button.dataset.way; });
        draw(document.getElementById("icicle"));
      });
    }
  }

  // Tables: sort by a click on a title, search by words, filter by a column.
  const value = (row, column) => {
    const cell = row.cells[column];
    const raw = cell.dataset.value ?? cell.textContent;
    return cell.classList.contains("n") ? Number(raw) : raw;
  };
  const sort = (table, column) => {
    const head = table.tHead.rows[0].cells[column];
    const first = head.classList.contains("n") && !("down" in head.dataset) ? "descending" : "ascending";
    const other = first === "descending" ? "ascending" : "descending";
    const order = head.getAttribute("aria-sort") === first ? other : first;
    for (const one of table.tHead.rows[0].cells) one.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const body = table.tBodies[0];
    const keyed = [...body.rows].map((row) => [value(row, column), row]);
    keyed.sort(([a], [b]) => sign * (typeof a === "number" ? a - b : a.localeCompare(b)));
    body.append(...keyed.map(([, row]) => row));
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(table, column));
      head.append(button);
    });
  }
  for (const tools of document.querySelectorAll(".tools[data-for]")) {
    const rows = [...document.getElementById(tools.dataset.for).tBodies[0].rows];
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const search = tools.querySelector("input");
    const filters = [...tools.querySelectorAll("select")];
    const output = tools.querySelector("output");
    const apply = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, at) => {
        const chosen = filters.every((one) => !one.value || row.getAttribute(`data-${one.dataset.filter}`) === one.value);
        row.hidden = !(chosen && words.every((word) => texts[at].includes(word)));
        shown += row.hidden ? 0 : 1;
      });
      output.textContent = shown === rows.length ? "" : `${shown} of ${rows.length}`;
    };
    search.addEventListener("input", apply);
    filters.forEach((one) => one.addEventListener("change", apply));
    tools.hidden = false;
  }

  const copy = async (text) => {
    if (navigator.clipboard && window.isSecureContext) {
      try { return await navigator.clipboard.writeText(text); } catch { /* not allowed here: the old way */ }
    }
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  };
  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = false;
    const title = button.textContent;
    button.addEventListener("click", async () => {
      await copy(button.previousElementSibling.textContent);
      button.textContent = "copied";
      setTimeout(() => { button.textContent = title; }, 1500);
    });
  }
})();
