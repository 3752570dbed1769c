"use strict";
(() => {
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const label = () => { theme.textContent = dark() ? "Light" : "Dark"; };
  theme.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; label(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
  label();

  const told = (button, text) => {
    const before = button.textContent;
    button.textContent = text;
    setTimeout(() => { button.textContent = before; }, 1500);
  };
  const copy = async (button, text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    told(button, "Copied");
  };
  const cellText = (cell) => [...cell.childNodes].map((node) => node.textContent).join(" ").trim();
  const tableText = (table) => [...table.rows].map((row) => [...row.cells].map(cellText).join("\t")).join("\n");
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", () => copy(button, tableText(document.querySelector(`#${button.dataset.copy} table`))));
  }
  document.getElementById("copy-json").addEventListener("click", (event) => {
    copy(event.currentTarget, document.getElementById("figures").textContent);
  });

  // A plot as it is seen: the colours of the page are written into the copy.
  const drawn = (svg) => {
    const clone = svg.cloneNode(true);
    const style = getComputedStyle(root);
    const colour = (text) => text.replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
    for (const node of clone.querySelectorAll("[style]")) node.setAttribute("style", colour(node.getAttribute("style")));
    const ground = document.createElementNS(svg.namespaceURI, "rect");
    for (const [key, value] of [["width", "100%"], ["height", "100%"], ["fill", colour("var(--card)")]]) ground.setAttribute(key, value);
    clone.prepend(ground);
    return new XMLSerializer().serializeToString(clone);
  };
  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  for (const button of document.querySelectorAll("[data-save]")) {
    button.addEventListener("click", () => {
      const figure = button.closest("figure");
      const svg = [...figure.querySelectorAll("svg")].find((one) => one.getClientRects().length);
      const name = figure.id.replace("plot-", "");
      const text = drawn(svg);
      if (button.dataset.save === "svg") {
        save(new Blob([text], { type: "image/svg+xml" }), `${name}.svg`);
        return;
      }
      const image = new Image();
      image.onload = () => {
        const canvas = document.createElement("canvas");
        canvas.width = 2 * svg.viewBox.baseVal.width;
        canvas.height = 2 * svg.viewBox.baseVal.height;
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((blob) => save(blob, `${name}.png`));
      };
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    });
  }
})();
