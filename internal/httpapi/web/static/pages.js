// Lists that are read page by page.

/**
 * Returns a function that shows the first page of a list. The button adds the next one. ask(cursor)
 * calls the API, row(item) returns a new element, and failed(answer, next) shows why there is no
 * page.
 */
export function pages({list, more, none, ask, row, failed}) {
  let cursor = '';
  let shown = '';
  let asked = 0;
  let first; // the first page that was asked for last: a promise
  async function load(next) {
    const mine = ++asked;
    const got = await ask(next ? cursor : '');
    if (mine !== asked) return; // a later press of a button, or another filter, has its own answer
    if (!got.ok) {
      shown = '';
      if (!next) cursor = ''; // it may be of another filter
      failed(got, next);
      return;
    }
    const items = JSON.stringify(got.data.items);
    if (next || items !== shown) { // new rows of the same items would take the focus
      if (!next) list.replaceChildren();
      list.append(...got.data.items.map(row));
      shown = next ? '' : items;
    }
    cursor = got.data.nextCursor ?? '';
    more.hidden = !cursor;
    none.hidden = Boolean(list.firstElementChild);
  }
  more.addEventListener('click', async () => {
    await first; // the next page is of what it shows
    load(Boolean(cursor));
  });
  return () => first = load(false);
}
