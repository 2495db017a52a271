// The public state of a waiting room: on the card of a buyer who waits, and in the console.
import {part, put} from './cards.js';
import {call} from './net.js';
import {count, gap, moment, t} from './words.js';

/** Reads the public state of a room; null where it cannot be read. */
export async function readLine(goodsId) {
  const answer = await call('GET', `/sales/${goodsId}/waiting-room`);
  return answer.ok ? answer.data : null;
}

/** The units that are left and those that may return. */
function units(line) {
  const left = t('line.left', {n: count(line.available)});
  if (!line.held) return left;
  const until = line.heldUntil ? moment(line.heldUntil) : '–';
  return left + gap + t('line.held', {n: count(line.held), time: until});
}

/** Whether a unit can still be won with so many buyers ahead. */
function chance(line, ahead) {
  if (ahead < line.available) return t('line.chance.yes');
  return t(ahead < line.available + line.held ? 'line.chance.held' : 'line.chance.others');
}

/** Shows on a card how far a place has come; hides it without a place. */
export function showWay(card, place, line) {
  let box = part(card, 'line');
  if (!box && !place) return;
  if (!box) {
    box = document.createElement('div');
    box.className = 'line';
    box.dataset.part = 'line';
    box.innerHTML = '<progress max="100"></progress><p></p><a></a>';
    box.firstChild.setAttribute('aria-label', t('line.bar'));
    part(card, 'say').before(box);
  }
  box.hidden = !place || !line;
  if (box.hidden) return;
  const [bar, text, check] = box.children;
  bar.hidden = !place.position;
  if (place.position) bar.value = Math.min(100, 100 * line.admitted / place.position);
  // The public state may be a second older than the place.
  const where = place.position ? t('line.position', {n: count(place.position)}) : t('line.joined', {n: count(Math.max(line.joined, place.number))});
  check.hidden = !place.position;
  check.href = `/s/${card.dataset.goods}/draw?number=${place.number}`;
  put(check, t('draw.link'));
  put(text, [where, units(line), ...place.position ? [chance(line, place.ahead)] : []].join(gap));
}

/** Shows the line of a sale in the console, every second while the page is visible. */
export async function followLine(tile, goodsId) {
  const line = document.hidden ? null : await readLine(goodsId);
  if (line) {
    tile.hidden = false;
    put(part(tile, 'waiting'), count(Math.max(0, line.joined - line.admitted)));
    const rate = line.ratePerSecond;
    put(part(tile, 'called'), t('line.console', {phase: t(`line.${line.phase}`), called: count(line.admitted), joined: count(line.joined), rate}));
    put(part(tile, 'units'), units(line));
  }
  setTimeout(() => followLine(tile, goodsId), 1000);
}
