// Fetches the API description with the reader's credential, which stays in this page's memory, and renders it.
const form = document.querySelector('#credential');
const problem = document.querySelector('#problem');

const render = (document, token) => {
  form.hidden = true;
  window.document.title = `${document.info.title} · API reference`;
  const view = window.SwaggerUIBundle({
    spec: document,
    dom_id: '#reference',
    deepLinking: true,
    filter: true,
    docExpansion: 'list',
    defaultModelsExpandDepth: 0,
    showExtensions: true,
    validatorUrl: null,
    onComplete: () => {
      if (token !== '') view.preauthorizeApiKey('bearer', token);
    },
  });
};

const load = async (token) => {
  const headers = token === '' ? {} : { authorization: `Bearer ${token}` };
  const answer = await fetch('openapi.json', { headers });
  const body = await answer.json();
  if (answer.ok) render(body, token);
  else {
    form.hidden = false;
    problem.textContent = answer.status === 401 && token === '' ? '' : body.detail;
  }
};

const start = (token) => {
  load(token).catch(() => {
    form.hidden = false;
    problem.textContent = 'The description could not be loaded.';
  });
};

form.addEventListener('submit', (event) => {
  event.preventDefault();
  start(document.querySelector('#token').value.trim());
});
start('');
