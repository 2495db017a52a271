// The access code of a sale that asks for one. It is stored, because a purchase or a wait in the
// line that continues after a reload needs it again.
import {store, stored} from './stored.js';

// A link with ?code= fills it in. Signing in leads away from the link, so the tab keeps its code:
// of a sale's page for that sale, and of the shop for every sale that has no code yet.
try {
  const linked = new URLSearchParams(location.search).get('code');
  if (linked) sessionStorage.setItem('code' + location.pathname, linked);
} catch { /* the code is typed again */ }

/** The code that a link has brought, or that the buyer has used for the sale, or ''. */
export function codeOf(goodsId) {
  try {
    const {[`code/s/${goodsId}`]: own, 'code/': any} = sessionStorage;
    return own ?? (stored('code', goodsId) || any || '');
  } catch {
    return '';
  }
}

/** Stores the code that the buyer uses for a sale; '' deletes it. A link's code is then used up. */
export function keepCode(goodsId, code) {
  try {
    for (const page of [`/s/${goodsId}`, '/']) sessionStorage.removeItem('code' + page);
  } catch { /* no storage */ }
  store('code', goodsId, code);
}
