// The access code of a sale that asks for one. It is stored, because a purchase or a wait in the
// line that continues after a reload needs it again.
import {store, stored} from './stored.js';

// A link with ?code= fills it in. Signing in leads away from the link, so the tab keeps its code.
try {
  const linked = new URLSearchParams(location.search).get('code');
  if (linked) sessionStorage.setItem('code', linked);
} catch { /* the code is typed again */ }

/** The code that a link has brought, or that the buyer has used for the sale, or ''. */
export function codeOf(goodsId) {
  try {
    return sessionStorage.getItem('code') ?? stored('code', goodsId);
  } catch {
    return '';
  }
}

/** Stores the code that the buyer uses for a sale; '' deletes it. A link's code is then used up. */
export function keepCode(goodsId, code) {
  try {
    sessionStorage.removeItem('code');
  } catch { /* no storage */ }
  store('code', goodsId, code);
}
