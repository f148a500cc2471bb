"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
  const charts = JSON.parse(document.getElementById("data").textContent);
  const places = [...document.querySelectorAll(".plot")];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const onPaper = matchMedia("print");

  // --- texts and colours ------------------------------------------------------------------------------------

  // Plotly reads its labels as a kind of HTML, so every text from the table is escaped for it, and kept apart from the
  // direction of the text around it.
  const label = (text, longest = 60) => {
    const points = Array.from(text.trim() === "" ? "(no name)" : text);
    const cut = points.length > longest ? points.slice(0, longest - 1).join("") + "…" : points.join("");
    return "\u2068" + cut.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;") + "\u2069";
  };
  const colours = () => {
    const style = getComputedStyle(root);
    const names = ["paper", "ink", "soft", "line", "grid", "first", "second", "third", "fourth", "gray"];
    return Object.fromEntries(names.map((name) => [name, style.getPropertyValue("--" + name).trim()]));
  };
  // One style for one method in every chart: colour, dash, marker and pattern.
  const styleOf = (method, place, c) => {
    const styles = {
      lip: { color: c.first, dash: "solid", symbol: "diamond", pattern: "" },
      std: { color: c.second, dash: "dash", symbol: "square-open", pattern: "/" },
      none: { color: c.gray, dash: "dot", symbol: "circle-open", pattern: "." },
    };
    const others = [
      { color: c.first, dash: "solid", symbol: "diamond", pattern: "" },
      { color: c.third, dash: "dashdot", symbol: "triangle-up-open", pattern: "x" },
      { color: c.fourth, dash: "dot", symbol: "circle-open", pattern: "." },
    ];
    return styles[method.split("-")[0]] || others[place % others.length];
  };

  // --- charts: data -> traces and layout ---------------------------------------------------------------------

  const narrow = (width) => width < 480;
  const rows = (chart, width) => ({
    yaxis: {
      tickmode: "array",
      tickvals: chart.names.map((_, i) => i),
      ticktext: chart.names.map((name) => label(name, narrow(width) ? chart.longest || 14 : 28)),
      autorange: false,
      range: [chart.names.length - 0.4, -0.6],
      automargin: true,
      showgrid: false,
      zeroline: false,
      ticks: "",
    },
    margin: { l: 8, r: 16, t: 34, b: 44 },
  });
  const hover = (what) => `%{customdata}<br>${what}<extra></extra>`;
  const dots = (chart, c) =>
    chart.series.map((one, place) => {
      const own = styleOf(one.key, place, c);
      return {
        type: "scatter",
        mode: "markers",
        name: label(one.name),
        x: one.values,
        y: one.values.map((_, i) => i),
        customdata: chart.names.map((name) => label(name)),
        hovertemplate: hover(`${label(one.name)}: %{x:.3~g}`),
        marker: { color: own.color, symbol: own.symbol, size: one.key === "none" ? 13 : 9, line: { width: 2, color: own.color } },
      };
    });
  const line = (axis, value, color) => ({
    type: "line",
    [axis + "0"]: value,
    [axis + "1"]: value,
    [axis === "x" ? "yref" : "xref"]: "paper",
    [axis === "x" ? "y0" : "x0"]: 0,
    [axis === "x" ? "y1" : "x1"]: 1,
    layer: "below",
    line: { color, width: 1.5, dash: "dot" },
  });
  const note = (text, x, c) => ({
    text, x, y: 0, yref: "paper", xanchor: "left", yanchor: "bottom", xshift: 4, showarrow: false, bgcolor: c.paper,
    font: { size: 11, color: c.soft },
  });
  // Single epochs are noisy where other cells are hidden in each: the mean of those around shows the way.
  const smoothed = (values) => {
    const half = Math.max(1, Math.round(values.length / 16));
    return values.map((_, i) => {
      const near = finite(values.slice(Math.max(0, i - half), i + half + 1));
      return near.length ? near.reduce((sum, one) => sum + one, 0) / near.length : null;
    });
  };
  const ownCurve = (name, x, y, c, hovered) => [
    { type: "scatter", mode: y.length > 1 ? "lines" : "markers", name, x, y, hovertemplate: hovered, opacity: y.length > 10 ? 0.35 : 1, line: { color: c.first, width: 1.5 }, marker: { color: c.first } },
    ...(y.length > 10
      ? [{ type: "scatter", mode: "lines", name: "moving average", x, y: smoothed(y), hoverinfo: "skip", line: { color: c.first, width: 3 } }]
      : []),
  ];
  const finite = (values) => values.filter((value) => value !== null);

  // Known before a chart is drawn, so that nothing moves when it is.
  const height = (chart, width) => {
    const rowHeight = { smoothness: 24, errors: 24, gradient: 28, intervals: 24, bars: 24 }[chart.type];
    if (rowHeight) return 110 + rowHeight * chart.names.length;
    if (chart.type === "heat") return (narrow(width) ? 120 : 170) + (narrow(width) ? 15 : 24) * chart.names.length;
    if (chart.type === "classes") return Math.max(240, 90 + 28 * chart.labels.length);
    return chart.type === "curves" && narrow(width) ? 270 : 240;
  };

  const kinds = {
    numbers(chart, c) {
      const { edges, observed, imputed, imputed_name: name } = chart;
      const middle = edges.slice(1).map((edge, i) => 0.5 * edge + 0.5 * edges[i]);
      const customdata = middle.map((_, i) => `${edges[i].toPrecision(4)} to ${edges[i + 1].toPrecision(4)}`);
      const traces = [];
      if (observed) {
        traces.push({
          type: "bar", name: "observed", x: middle, y: observed, customdata,
          width: edges.slice(1).map((edge, i) => edge - edges[i]),
          hovertemplate: hover("observed: %{y:.1%}"),
          marker: { color: c.first + "80", line: { width: 0 } },
        });
      }
      if (imputed) {
        // The outline of a histogram: from the axis up, along every bin, and down again.
        const x = [edges[0], ...edges];
        const y = [0, ...imputed, 0];
        traces.push({
          type: "scatter", mode: "lines", name, x, y, hoverinfo: "skip",
          line: { color: c.second, width: 2.5, shape: "hv" },
        }, {
          type: "scatter", mode: "markers", x: middle, y: imputed, customdata, showlegend: false,
          hovertemplate: hover("imputed: %{y:.1%}"), marker: { color: c.second, opacity: 0 },
        });
      }
      return {
        traces,
        layout: {
          bargap: 0, barmode: "overlay",
          xaxis: { zeroline: false, showgrid: false, nticks: 7 },
          yaxis: { title: { text: "share of cells" }, tickformat: ",.0%", rangemode: "tozero", nticks: 5, automargin: true },
        },
      };
    },
    classes(chart, c, width) {
      const named = { names: chart.labels };
      const bar = (name, values, color, pattern, side) => ({
        type: "bar", orientation: "h", name, x: values, y: chart.labels.map((_, i) => i + side), width: 0.36,
        customdata: chart.labels.map((text) => label(text)), hovertemplate: hover(`${name}: %{x:.1%}`),
        marker: { color, line: { color, width: 1 }, pattern: { shape: pattern, fgcolor: color, bgcolor: c.paper, size: 6 } },
      });
      const traces = [];
      if (chart.observed) traces.push(bar("observed", chart.observed, c.first + "80", "", chart.imputed ? -0.19 : 0));
      if (chart.imputed) traces.push(bar(chart.imputed_name, chart.imputed, c.second, "/", chart.observed ? 0.19 : 0));
      const base = rows(named, width);
      return {
        traces,
        layout: {
          ...base, bargap: 0,
          xaxis: { title: { text: "share of cells" }, tickformat: ",.0%", rangemode: "tozero", nticks: 6 },
        },
      };
    },
    curves(chart, c) {
      const traces = chart.lines.flatMap((one, place) => {
        if (chart.own) return ownCurve(label(one.method), one.epochs, one.gain, c, "epoch %{x}: %{y:.3~g}<extra></extra>");
        const own = styleOf(one.method, place, c);
        return {
          type: "scatter", mode: one.gain.length > 1 ? "lines" : "markers", name: label(one.method), x: one.epochs, y: one.gain,
          hovertemplate: `epoch %{x}: %{y:.3~g}<extra>${label(one.method)}</extra>`,
          line: { color: own.color, width: 2.5, dash: own.dash }, marker: { color: own.color, symbol: own.symbol },
        };
      });
      // The first epochs may lie far below; they would flatten the rest.
      const late = chart.lines.flatMap((one) => finite(one.gain.slice(Math.floor(one.gain.length / 5))));
      const low = Math.min(0, ...late), high = Math.max(0, ...late);
      const margin = 0.08 * (high - low) || 1;
      const ends = chart.lines.flatMap((one) => [one.epochs[0], one.epochs[one.epochs.length - 1]]);
      const alone = {
        type: "scatter", mode: "lines", name: "the column alone", x: [Math.min(...ends), Math.max(...ends)], y: [0, 0],
        hoverinfo: "skip", line: { color: c.ink, width: 1.5, dash: "dot" },
      };
      return {
        traces: [...traces, alone],
        layout: {
          xaxis: { title: { text: "epoch" }, showgrid: false, zeroline: false, nticks: 7 },
          yaxis: { title: { text: "gain in log-likelihood" }, range: [low - 2 * margin, high + margin], zeroline: false, nticks: 5, automargin: true },
        },
      };
    },
    smoothness(chart, c, width) {
      const x = [], y = [];
      chart.names.forEach((_, i) => {
        const own = finite(chart.series.map((one) => one.values[i]));
        if (own.length) { x.push(Math.min(...own), Math.max(...own), null); y.push(i, i, null); }
      });
      const decades = Math.log10(Math.max(...finite(x)) / Math.min(...finite(x)));
      const ticks = decades > 1.5 ? { dtick: Math.ceil(decades / (narrow(width) ? 4 : 8)) } : { nticks: 5 };
      const span = { type: "scatter", mode: "lines", x, y, hoverinfo: "skip", showlegend: false, line: { color: c.line, width: 2 } };
      return {
        traces: [span, ...dots(chart, c)],
        layout: { ...rows(chart, width), xaxis: { type: "log", title: { text: "smoothness (log scale)" }, ...ticks, exponentformat: "power" } },
      };
    },
    gradient(chart, c, width) {
      const sides = [-0.19, 0.19];
      const traces = chart.series.map((one, place) => {
        const own = styleOf(one.key, place, c);
        return {
          type: "bar", orientation: "h", name: label(one.name), x: one.values, y: one.values.map((_, i) => i + sides[place]), width: 0.36,
          customdata: chart.names.map((name) => label(name)), hovertemplate: hover(`${label(one.name)}: %{x:.1%}`),
          marker: { color: own.color, line: { color: own.color, width: 1 }, pattern: { shape: own.pattern, fgcolor: own.color, bgcolor: c.paper, size: 6 } },
        };
      });
      return {
        traces,
        layout: {
          ...rows(chart, width), shapes: [line("x", chart.equal, c.ink)],
          annotations: [note("equal shares", chart.equal, c)],
          xaxis: { title: { text: "share of the gradient" }, tickformat: ",.0%", rangemode: "tozero", nticks: 8 },
        },
      };
    },
    errors(chart, c, width) {
      // What lies far off is drawn at the edge, as an arrow: it would squeeze the rest.
      const edge = 2;
      const traces = dots(chart, c).map((trace) => {
        const far = trace.x.map((value) => value > edge);
        return {
          ...trace,
          customdata: trace.customdata.map((name, i) => `${name}<br>${trace.name}: ${Number((trace.x[i] ?? NaN).toPrecision(3))}`),
          hovertemplate: "%{customdata}<extra></extra>",
          x: trace.x.map((value, i) => (far[i] ? edge : value)),
          marker: { ...trace.marker, symbol: far.map((is) => (is ? "triangle-right" : trace.marker.symbol)) },
        };
      });
      return {
        traces,
        layout: {
          ...rows(chart, width), shapes: [line("x", 1, c.ink)],
          annotations: [note("mean or mode", 1, c)],
          xaxis: { title: { text: "error / error of mean or mode (less is better)" }, rangemode: "tozero", zeroline: false, nticks: 8 },
        },
      };
    },
    // Values with their intervals, one row each, beside a reference. What lies far off is drawn at the edge, as an arrow.
    intervals(chart, c, width) {
      const edge = chart.share ? 1 : 2;
      const far = chart.values.map((value) => value > edge);
      const at = (value) => (value === null ? edge : Math.min(value, edge));
      const show = (value) => (value === null ? "∞" : chart.share ? `${Number((100 * value).toPrecision(3))} %` : Number(value.toPrecision(3)));
      const x = [], y = [];
      chart.values.forEach((value, i) => {
        if (value !== null) { x.push(at(chart.lows[i] ?? 0), at(chart.highs[i]), null); y.push(i, i, null); }
      });
      const texts = chart.names.map(
        (name, i) => `${label(name)}<br>${chart.name}: ${show(chart.values[i])}<br>90 % interval: ${show(chart.lows[i])} to ${show(chart.highs[i])}`,
      );
      return {
        traces: [
          { type: "scatter", mode: "lines", name: "90 % interval", x, y, hoverinfo: "skip", line: { color: c.first, width: 2.5 } },
          {
            type: "scatter", mode: "markers", name: label(chart.share ? "share" : "ratio"), x: chart.values.map((value) => (value === null ? null : at(value))),
            y: chart.names.map((_, i) => i), customdata: texts, hovertemplate: "%{customdata}<extra></extra>",
            marker: { color: c.first, size: 10, symbol: far.map((is) => (is ? "triangle-right" : "diamond")) },
          },
          {
            type: "scatter", mode: "lines", name: label(chart.reference_name), x: [chart.reference, chart.reference],
            y: [-0.6, chart.names.length - 0.4], hoverinfo: "skip", line: { color: c.second, width: 2, dash: "dot" },
          },
        ],
        layout: {
          ...rows(chart, width),
          xaxis: {
            title: { text: narrow(width) || !chart.share ? chart.name : `${chart.name} their 90 % intervals` }, zeroline: false, nticks: 6,
            ...(chart.share ? { range: [Math.min(0.5, ...finite(chart.lows)) - 0.02, 1.02], tickformat: ",.0%" } : { rangemode: "tozero" }),
          },
        },
      };
    },
    bars(chart, c, width) {
      const [one] = chart.series;
      return {
        traces: [{
          type: "bar", orientation: "h", name: label(one.name), x: one.values, y: one.values.map((_, i) => i), width: 0.6,
          customdata: chart.names.map((name) => label(name)), hovertemplate: hover("%{x:.1%} missing"), marker: { color: c.gray },
        }],
        layout: { ...rows(chart, width), xaxis: { title: { text: "share of cells" }, tickformat: ",.1~%", rangemode: "tozero", nticks: 6 } },
      };
    },
    elbo(chart, c) {
      const late = finite(chart.values.slice(Math.floor(chart.values.length / 5)));
      const low = Math.min(...late), high = Math.max(...finite(chart.values));
      const margin = 0.08 * (high - low) || 1;
      return {
        traces: ownCurve("ELBO", chart.epochs, chart.values, c, "epoch %{x}: %{y:.4~g}<extra></extra>"),
        layout: {
          xaxis: { title: { text: "epoch" }, showgrid: false, zeroline: false, nticks: 7 },
          yaxis: { title: { text: "ELBO" }, range: [low - 2 * margin, high + margin], zeroline: false, nticks: 5, automargin: true },
        },
      };
    },
    heat(chart, c, width) {
      const names = chart.names.map((name) => label(name, narrow(width) ? 10 : 24));
      const places = chart.names.map((_, i) => i);
      const ticks = { tickmode: "array", tickvals: places, ticktext: names, automargin: true, showgrid: false, zeroline: false, ticks: "" };
      return {
        traces: [{
          type: "heatmap", x: places, y: places, z: chart.values, zmin: -1, zmax: 1, xgap: 1, ygap: 1, hoverongaps: false,
          customdata: chart.names.map((one) => chart.names.map((other) => `${label(one)}<br>${label(other)}`)),
          hovertemplate: hover("%{z:.2f}"),
          colorscale: [[0, c.second], [0.5, c.paper], [1, c.first]],
          colorbar: { thickness: 12, outlinewidth: 0, tickvals: [-1, -0.5, 0, 0.5, 1], tickfont: { color: c.soft }, len: 1 },
        }],
        layout: {
          xaxis: { ...ticks, tickangle: -90 }, yaxis: { ...ticks, autorange: "reversed" }, margin: { l: 8, r: 8, t: 8, b: 8 },
        },
      };
    },
  };

  const config = { displayModeBar: false, displaylogo: false, scrollZoom: false, doubleClick: false, typesetMath: false, showTips: false };
  const reserve = (place) => {
    place.style.minHeight = height(charts[Number(place.dataset.chart)], root.clientWidth) + "px";
  };
  const draw = (place) => {
    const c = colours();
    const width = Math.floor(place.clientWidth);
    if (!window.Plotly || width === 0) return;
    const chart = charts[Number(place.dataset.chart)];
    const { traces, layout } = kinds[chart.type](chart, c, width);
    const axis = (own) => ({
      gridcolor: c.grid, linecolor: c.line, zerolinecolor: c.line, fixedrange: true, tickangle: 0, tickfont: { color: c.soft },
      ...own, title: own && own.title ? { ...own.title, font: { size: 12, color: c.soft }, standoff: 8 } : undefined,
    });
    Plotly.react(place, traces, {
      margin: { l: 8, r: 12, t: 30, b: 44 },
      ...layout, width, height: height(chart, width), autosize: false, dragmode: false, hovermode: "closest", paper_bgcolor: c.paper, plot_bgcolor: c.paper,
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: c.ink },
      legend: { orientation: "h", x: 0, xanchor: "left", y: 1, yanchor: "bottom", itemclick: false, itemdoubleclick: false },
      showlegend: traces.filter((trace) => trace.showlegend !== false).length > 1,
      hoverlabel: { bgcolor: c.paper, bordercolor: c.gray, font: { color: c.ink, size: 12 } },
      xaxis: axis(layout.xaxis), yaxis: axis(layout.yaxis),
    }, config);
    place.dataset.width = width;
  };

  places.forEach(reserve);

  // --- when to draw: as a chart comes into view, and again in other colours or widths -------------------------

  const drawn = () => places.filter((place) => place.dataset.width);
  const watch = () => {
    const arriving = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        if (isIntersecting) { arriving.unobserve(target); draw(target); }
      }
    }, { rootMargin: "400px" });
    const resized = new ResizeObserver((entries) => {
      for (const { target } of entries) {
        if (target.dataset.width && target.clientWidth && Number(target.dataset.width) !== Math.floor(target.clientWidth)) draw(target);
      }
    });
    for (const place of places) { arriving.observe(place); resized.observe(place); }
    dark.addEventListener("change", () => drawn().forEach(draw));
  };
  const print = (now) => {
    if (root.classList.contains("printing") === now) return;
    root.classList.toggle("printing", now);
    (now ? places : drawn()).forEach(draw);
  };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  onPaper.addEventListener("change", (event) => print(event.matches));

  const start = async () => {
    const bytes = Uint8Array.from(atob(document.getElementById("plotly").textContent), (one) => one.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    if (!window.Plotly) throw new Error("Plotly did not start");
    watch();
    if (onPaper.matches) print(true);
  };
  start().catch(() => {
    root.classList.add("failed");
    document.getElementById("no-charts").hidden = false;
  });

  // --- the table: sort and search ------------------------------------------------------------------------------

  const overview = document.getElementById("overview");
  const body = overview.tBodies[0];
  const cards = document.getElementById("cards");
  const cardOf = new Map(cards ? [...cards.children].map((card) => [card.dataset.column, card]) : []);
  const original = [...body.rows];
  root.classList.toggle("many", original.length > 100);
  const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  const compare = (one, other, numeric) => (numeric ? Number(one) - Number(other) : collator.compare(one, other));

  const sort = (header) => {
    const column = header.cellIndex;
    const now = header.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    for (const other of overview.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
    header.setAttribute("aria-sort", now);
    const value = (row) => row.cells[column].dataset.value ?? "";
    const numeric = original.some((row) => row.cells[column].classList.contains("number"));
    const sign = now === "ascending" ? 1 : -1;
    const ordered = [...original].sort((one, other) => {
      const [a, b] = [value(one), value(other)];
      if (a === "" || b === "") return Number(a === "") - Number(b === ""); // nothing known: last, either way
      return sign * compare(a, b, numeric);
    });
    body.append(...ordered);
    if (cards) cards.append(...ordered.map((row) => cardOf.get(row.dataset.column)).filter(Boolean));
  };
  for (const header of overview.tHead.rows[0].cells) {
    header.querySelector("button").addEventListener("click", () => sort(header));
  }

  const search = document.getElementById("search");
  const found = document.getElementById("found");
  const texts = new Map(original.map((row) => [row, row.textContent.toLocaleLowerCase()]));
  search.addEventListener("input", () => {
    const words = search.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of original) {
      const hit = words.every((word) => texts.get(row).includes(word));
      row.hidden = !hit;
      const card = cardOf.get(row.dataset.column);
      if (card) card.hidden = !hit;
      shown += hit;
    }
    found.textContent = words.length ? `${shown} of ${original.length} columns` : "";
  });
})();
