// A notice for console pages whose session has ended while they were open.
import {t} from './words.js';

document.addEventListener('signedout', () => {
  if (document.getElementById('signed-out')) return;
  const link = document.createElement('a');
  link.href = `/session?to=${encodeURIComponent(location.pathname)}`;
  link.textContent = t('nav.signin');
  const notice = document.createElement('p');
  notice.id = 'signed-out';
  notice.className = 'notice';
  notice.setAttribute('role', 'alert');
  notice.append(t('reason.UNAUTHENTICATED'), ' ', link);
  document.getElementById('main').prepend(notice);
});
