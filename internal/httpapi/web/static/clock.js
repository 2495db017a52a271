// The server's clock, as near as it can be known. The device's own clock is not asked: only how much time has passed
// counts, so a clock that is set wrong, or set anew while the page is open, does not matter.
let ahead = -Infinity;

/**
 * Learn from an answer that the server stamped. It was stamped before it arrived, so the server's clock is at least its
 * stamp plus the time since: of all answers the one that says the most is the nearest. The clock is late by no more than
 * the fastest answer's way here, and never early: nobody presses before a sale begins.
 */
export function learn(stamp, arrived = performance.now()) {
  ahead = Math.max(ahead, Date.parse(stamp) - arrived);
}

/** What time it is on the server, in ms since 1970. */
export const now = () => ahead + performance.now();

learn(document.documentElement.dataset.now);

/** Calls step now and at every full second of the server's clock. */
export function everySecond(step) {
  const next = () => {
    step(now());
    setTimeout(next, 1000 - (now() % 1000) + 5);
  };
  next();
}
