// What axe-core does not check: how the page fits the screen. It returns what is wrong, a line each.
(() => {
  const wrong = [];
  const page = document.documentElement;
  const all = (selector) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility());
  const box = (e) => e.getBoundingClientRect();
  const named = (e) => `${e.localName}${e.id && '#' + e.id}.${e.className}`;
  if (page.scrollWidth > page.clientWidth) {
    const wide = all('main *').filter((e) => box(e).right > innerWidth).map(named);
    wrong.push(`wider than the screen, ${innerWidth} px: ${page.scrollWidth} px, by ${wide.slice(0, 5)}`);
  }
  for (const d of all('dialog[open]')) {
    const {left, right, top, bottom} = box(d);
    if (d.scrollWidth > d.clientWidth) wrong.push(`a dialog scrolls sideways: ${d.id}`);
    if (left < 0 || right > innerWidth || top < 0 || bottom > innerHeight) wrong.push(`a dialog leaves the screen: ${d.id}`);
  }
  // Blocks of a page have a distance. The way back has its own padding.
  const blocks = all('main > :not(dialog, svg, .crumbs, .back)').filter((e) => box(e).height > 0);
  blocks.slice(1).forEach((e, i) => {
    const gap = box(e).top - box(blocks[i]).bottom;
    if (gap < 6) wrong.push(`${innerWidth} px: ${named(blocks[i])} and ${named(e)} are ${gap} px apart`);
  });
  // What belongs to one column or row stands in line.
  const aligned = (what, edges) => {
    if (Math.max(...edges) - Math.min(...edges) > 1) wrong.push(`${innerWidth} px: ${what} are not in line: ${edges}`);
  };
  for (const column of ['.order .sum', '.order .state', '.row [data-part=price]', '.row [data-part=sold]']) {
    aligned(column, all(column).map((e) => box(e).left));
  }
  for (const heading of all('main h1')) aligned('the heading and the way back', [heading, ...all('.crumbs a, .back a')].map((e) => box(e).left));
  for (const field of all('.field + .field')) {
    const pair = [field.previousElementSibling, field];
    if (box(pair[0]).top === box(pair[1]).top) aligned('two fields', pair.map((f) => box(f.querySelector('input, select')).top));
  }
  for (const e of all('.chip')) if (!e.textContent) wrong.push('an empty chip');
  for (const e of all('td')) if (getComputedStyle(e).display === 'block' && getComputedStyle(e).textAlign !== 'start') wrong.push('a line of a table is not at the start');
  for (const e of all('.brand span')) if (e.textContent.length <= 10 && e.scrollWidth > e.clientWidth) wrong.push(`${innerWidth} px: the name of the shop is cut`);
  for (const e of all(':disabled')) if (getComputedStyle(e).cursor !== 'not-allowed') wrong.push(`${named(e)} is disabled and has the cursor of what is not`);
  // Readers list buttons without what stands beside them.
  const names = all(document.querySelector('dialog[open]') ? 'dialog[open] button' : 'main button')
    .map((e) => [e.ariaLabel ?? e.innerText, e.ariaDescribedByElements?.[0]?.innerText, e.dataset.open].join(' '));
  for (const name of new Set(names)) if (names.indexOf(name) !== names.lastIndexOf(name)) wrong.push(`two buttons have the name ${name}`);
  // A region that is not displayed is not in the accessibility tree: readers may miss its first text.
  for (const e of document.querySelectorAll('.say, .wrong')) if (getComputedStyle(e).display === 'none') wrong.push(`${named(e)} is no live region yet`);
  // Text may be twice as large, or have the spaces of WCAG 1.4.12. A card hides what leaves it.
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [sheet];
  for (const [what, rules] of innerWidth !== 390 ? [] : [
    ['text of 200 %', ':root { font-size: 200% }'],
    ['spaced text', '* { line-height: 1.5 !important; letter-spacing: .12em !important; word-spacing: .16em !important } p { margin-bottom: 2em !important }'],
  ]) {
    sheet.replaceSync(rules);
    const text = `${innerWidth} px, ${what}:`;
    if (page.scrollWidth > page.clientWidth) {
      const wide = all('body :not(.cover *)').filter((e) => box(e).right > 391).map(named);
      wrong.push(`${text} ${page.scrollWidth} px wide, by ${wide.slice(0, 5)}`);
    }
    for (const d of all('dialog[open]')) if (d.scrollWidth > d.clientWidth) wrong.push(`${text} a dialog scrolls sideways: ${d.id}`);
    for (const e of all('.card .body, .sn')) if (e.scrollWidth > e.clientWidth + 1) wrong.push(`${text} ${named(e)} is cut`);
  }
  document.adoptedStyleSheets = [];
  return wrong;
})()
