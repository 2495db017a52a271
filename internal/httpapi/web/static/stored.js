// What the browser stores for one user and one sale. Without storage everything works, but nothing
// survives a reload of the page.
import {user} from './net.js';

/** The key of an entry of localStorage. */
export const keyOf = (kind, goodsId) => `${kind}:${user}:${goodsId}`;

/** The stored text, or ''. */
export function stored(kind, goodsId) {
  try {
    return localStorage.getItem(keyOf(kind, goodsId)) ?? '';
  } catch {
    return '';
  }
}

/** Stores a text; '' deletes it. */
export function store(kind, goodsId, text) {
  try {
    if (text) localStorage.setItem(keyOf(kind, goodsId), text);
    else localStorage.removeItem(keyOf(kind, goodsId));
  } catch { /* no storage */ }
}
