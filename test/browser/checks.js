// What axe-core does not check: nothing is wider than the screen. It returns what is wrong, a line
// each.
(() => {
  const wrong = [];
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) {
    const wide = [...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > innerWidth).map((e) => `${e.localName}.${e.className}`);
    wrong.push(`wider than the screen, ${innerWidth} px: ${page.scrollWidth} px, by ${wide.slice(0, 5)}`);
  }
  for (const d of document.querySelectorAll('dialog[open]')) {
    const box = d.getBoundingClientRect();
    if (d.scrollWidth > d.clientWidth) wrong.push(`a dialog scrolls sideways: ${d.id}`);
    if (box.left < 0 || box.right > innerWidth || box.top < 0 || box.bottom > innerHeight) wrong.push(`a dialog leaves the screen: ${d.id}`);
  }
  return wrong;
})()
