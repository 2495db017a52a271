// An estimate of the server's clock. It uses only the device's monotonic clock, so a wrong or
// changed device time has no effect.
let ahead = -Infinity;

/**
 * Improves the estimate with a response's time stamp. The stamp is older than the arrival, so the
 * largest difference seen is the best estimate. The estimate is never early, so that no button is
 * enabled before its sale begins; it is late by the latency of the fastest response.
 */
export function setOffset(stamp, arrived = performance.now()) {
  ahead = Math.max(ahead, Date.parse(stamp) - arrived);
}

/** The server's time in ms since 1970. */
export const now = () => ahead + performance.now();

setOffset(document.documentElement.dataset.now);

/** Calls step now and at every full second of the server's clock. */
export function everySecond(step) {
  const next = () => {
    step(now());
    setTimeout(next, 1000 - (now() % 1000) + 5);
  };
  next();
}
