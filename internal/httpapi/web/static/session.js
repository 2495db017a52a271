// The page to sign in and out.
import {call} from './net.js';
import {oneOf, t} from './words.js';

const say = document.getElementById('say');

/** The address to open after signing in; addresses of other sites are refused. */
function next(role) {
  const home = role === 'buyer' ? '/' : '/console';
  const wanted = new URLSearchParams(location.search).get('to');
  // The browser's own parser decides which site an address leads to.
  if (!wanted?.startsWith('/') || !URL.canParse(wanted, location.origin)) return home;
  const to = new URL(wanted, location.origin);
  const barred = role === 'buyer' && to.pathname.startsWith('/console');
  return to.origin === location.origin && !barred ? to.href : home;
}

async function enter(body, buttons) {
  for (const b of buttons) b.disabled = true;
  say.textContent = t('session.going');
  const answer = await call('POST', '/session', body);
  if (answer.ok) {
    location.assign(next(answer.data.role));
    return;
  }
  for (const b of buttons) b.disabled = false;
  say.dataset.kind = 'no';
  say.textContent = answer.reason === 'UNAUTHENTICATED' ? t('session.bad') : oneOf('reason', answer.reason);
}

const guests = document.querySelectorAll('.guest');
for (const button of guests) button.addEventListener('click', () => enter({guest: button.dataset.guest}, guests));

const form = document.getElementById('enter');
form?.addEventListener('submit', (event) => {
  event.preventDefault();
  enter({token: form.token.value.trim()}, form.querySelectorAll('button'));
});

document.getElementById('leave')?.addEventListener('click', async () => {
  const answer = await call('DELETE', '/session');
  if (answer.ok) location.assign('/');
  else say.textContent = oneOf('reason', answer.reason);
});
