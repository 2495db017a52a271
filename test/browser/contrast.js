// Computes contrasts from the colours: of all texts that are not disabled (WCAG 1.4.3), of hints in
// fields, and of the fields' borders (1.4.11). axe-core leaves some texts open, and passes those to
// which a dialog must scroll. It returns what is wrong, a line each. A background that it can't
// compute is wrong too.
(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
  /** The luminance of colours that lie above each other on white paper. */
  const luminance = (colours) => {
    for (const colour of ['#fff', ...colours]) {
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
    }
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((n) => n <= 10 ? n / 3294 : ((n / 255 + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const wrong = [];
  /** Checks a colour above an element's background, unless the element is clipped away. */
  const check = (what, element, colour, least) => {
    const colours = [];
    for (let e = element; e; e = e.parentElement) {
      const {position, clipPath, backgroundColor, backgroundImage, filter, opacity} = getComputedStyle(e);
      if (clipPath !== 'none' || position === 'absolute' && e.getBoundingClientRect().right < 0) return;
      colours.unshift(backgroundColor);
      if (backgroundImage !== 'none' || filter !== 'none' || opacity !== '1') wrong.push(`${what}: no contrast is known: ${backgroundImage}, ${filter}, ${opacity}`);
      if (/^rgb\(/.test(backgroundColor)) break;
      if (['absolute', 'fixed'].includes(position)) wrong.push(`${what}: no contrast is known: it may lie above other elements`);
    }
    const [dark, light] = [luminance(colours), luminance([...colours, colour])].sort((a, b) => a - b);
    const ratio = (light + .05) / (dark + .05);
    if (ratio < least) wrong.push(`${what}: contrast ${ratio.toFixed(2)}, not ${least}: ${colour} on ${colours.join(', ')}`);
  };
  const top = document.querySelector('dialog[open]') ?? document.body;
  const texts = new Set(top.querySelectorAll('input, select, textarea'));
  const nodes = document.createTreeWalker(top, NodeFilter.SHOW_TEXT);
  while (nodes.nextNode()) if (nodes.currentNode.data.trim()) texts.add(nodes.currentNode.parentElement);
  for (const e of texts) {
    if (!e.getClientRects().length || !e.checkVisibility() || e.closest(':disabled, [aria-disabled=true]')) continue;
    const style = getComputedStyle(e);
    const name = `${e.localName}#${e.id}.${e.className.baseVal ?? e.className} "${e.textContent.trim().slice(0, 20)}"`;
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
    check(name, e, e instanceof SVGElement ? style.fill : style.color, large ? 3 : 4.5);
    if (e.placeholder) check(`hint of ${name}`, e, getComputedStyle(e, '::placeholder').color, 4.5);
    if (e.matches('select, textarea, input:not([type=checkbox])')) check(`border of ${name}`, e.parentElement, style.borderTopColor, 3);
  }
  return wrong;
})()
