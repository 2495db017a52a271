// What a page must hold for everybody: names, labels, contrast, targets, headings, width. In the manner of axe-core, and
// much smaller: it returns what is wrong, one line each.
(() => {
  const wrong = [];
  const seen = (e) => {
    const box = e.getBoundingClientRect();
    const style = getComputedStyle(e);
    return box.width > 0 && box.height > 0 && style.visibility !== 'hidden' && !e.closest('[aria-hidden=true], [hidden], template');
  };
  const show = (e) => `<${e.localName}${e.id && ' id=' + e.id}${e.className && typeof e.className === 'string' ? ' class=' + e.className : ''}> ${(e.innerText || '').trim().slice(0, 40)}`;
  const byIds = (ids) => (ids ?? '').split(/\s+/).filter(Boolean).map((id) => document.getElementById(id)?.innerText.trim() ?? '').join(' ');
  const nameOf = (e) => (byIds(e.getAttribute('aria-labelledby')) || e.getAttribute('aria-label') || [...(e.labels ?? [])].map((l) => l.innerText).join(' ') || e.innerText || e.title || '').trim();

  // Names and labels.
  for (const e of document.querySelectorAll('a[href], button, input, select, textarea, [role=img], [role=region], dialog')) {
    if (seen(e) && !nameOf(e)) wrong.push(`no name: ${show(e)}`);
  }
  for (const e of document.querySelectorAll('svg:not([aria-hidden=true]):not([role=img]), img:not([alt])')) if (seen(e)) wrong.push(`a picture without words: ${show(e)}`);
  for (const e of document.querySelectorAll('input, select, textarea')) {
    if (seen(e) && !e.labels?.length && !e.getAttribute('aria-label')) wrong.push(`no label: ${show(e)}`);
  }
  for (const name of ['aria-labelledby', 'aria-describedby', 'for', 'list']) {
    for (const e of document.querySelectorAll(`[${name}]`)) {
      for (const id of e.getAttribute(name).split(/\s+/)) if (!document.getElementById(id)) wrong.push(`${name} leads nowhere: ${id}`);
    }
  }
  const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
  for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) wrong.push(`an id twice: ${id}`);
  if (document.querySelector('[tabindex]:not([tabindex="0"]):not([tabindex="-1"])')) wrong.push('an order of tabs of its own');

  // The frame: a language, a title, one main, headings without a gap.
  if (!document.documentElement.lang) wrong.push('no language');
  if (!document.title) wrong.push('no title');
  const marks = [...document.querySelectorAll('[role=search], [role=region], section[aria-labelledby], section[aria-label], nav')].filter(seen).map(nameOf);
  for (const name of new Set(marks.filter((name, i) => marks.indexOf(name) !== i))) wrong.push(`two landmarks of one name: ${name}`);
  if (document.querySelectorAll('main').length !== 1) wrong.push('not one main');
  let level = 0;
  for (const h of [...document.querySelectorAll('h1, h2, h3, h4')].filter(seen)) {
    const own = Number(h.localName[1]);
    if (own > level + 1) wrong.push(`a heading skips a level: ${show(h)}`);
    level = own;
  }
  if ([...document.querySelectorAll('h1')].filter(seen).length !== 1) wrong.push('not one h1');
  if (document.documentElement.scrollWidth > document.documentElement.clientWidth) wrong.push(`wider than the screen: ${document.documentElement.scrollWidth}`);

  for (const d of document.querySelectorAll('dialog[open]')) {
    const box = d.getBoundingClientRect();
    if (d.scrollWidth > d.clientWidth) wrong.push(`a dialog scrolls sideways: ${show(d)}`);
    if (box.left < 0 || box.right > innerWidth || box.top < 0 || box.bottom > innerHeight) wrong.push(`a dialog leaves the screen: ${show(d)}`);
  }

  // Targets: WCAG 2.2, 2.5.8 (24 px), but links within a sentence.
  for (const e of document.querySelectorAll('a[href], button, input, select, textarea')) {
    const box = e.getBoundingClientRect();
    const inText = e.localName === 'a' && getComputedStyle(e).display === 'inline';
    if (seen(e) && !inText && !e.classList.contains('skip') && (box.width < 24 || box.height < 24)) wrong.push(`a small target, ${box.width} by ${box.height}: ${show(e)}`);
  }

  // Contrast: WCAG 1.4.3. Colours are drawn, and read back, so that every way of writing one is understood.
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return {r, g, b, a: a / 255};
  };
  const over = (top, under) => ({r: top.r * top.a + under.r * (1 - top.a), g: top.g * top.a + under.g * (1 - top.a), b: top.b * top.a + under.b * (1 - top.a), a: 1});
  const behind = (e) => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((under, top) => over(top, under), {r: 255, g: 255, b: 255, a: 1});
  };
  const light = ({r, g, b}) => [r, g, b].map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.textContent.trim());
    if (!own || !seen(e) || e.closest('svg, .hear, .skip, noscript, option, :disabled')) continue;
    const style = getComputedStyle(e);
    const back = behind(e);
    const [a, b] = [light(over(rgba(style.color), back)), light(back)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const need = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700 ? 3 : 4.5;
    if (ratio < need) wrong.push(`contrast ${ratio.toFixed(2)} of ${need}: ${show(e)}`);
  }
  return wrong;
})()
