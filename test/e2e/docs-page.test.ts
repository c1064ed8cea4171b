import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import { openApp } from '../support/app.ts';
import { eventually, processMs } from '../support/eventually.ts';

const browserPath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) =>
  existsSync(path),
);

test('the reference page shows every operation in a real browser and asks no other host for anything', {
  skip: browserPath === undefined ? 'there is no Chromium on this machine' : false,
}, async (t) => {
  const app = await openApp(t, 'http');
  const browser = await chromium.launch({
    executablePath: browserPath ?? '',
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--no-first-run'],
  });
  t.after(() => browser.close());
  const page = await browser.newPage();
  const hosts = new Set<string>();
  const problems: string[] = [];
  page.on('request', (request) => hosts.add(new URL(request.url()).host));
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  await page.goto(`${app.url}/docs`);
  await page.locator('.opblock').first().waitFor();
  const description = (await (await fetch(`${app.url}/openapi.json`)).json()) as { paths: Record<string, object> };
  const operations = Object.values(description.paths).flatMap((path) => Object.keys(path));
  // Of a list as long as this the page holds what is in sight; from its end the look begins anew.
  const look = `{
    const ids = [...document.querySelectorAll('.opblock')].map(({ id }) => id);
    const from = scrollY;
    scrollBy(0, 400);
    if (scrollY === from) scrollTo(0, 0);
    ids;
  }`;
  const seen = new Set<string>();
  await eventually(
    'all operations were in sight',
    async () => {
      for (const id of await page.evaluate<string[]>(look)) seen.add(id);
      return seen.size === operations.length;
    },
    processMs,
  );
  assert.deepEqual([...hosts], [new URL(app.url).host]);
  assert.deepEqual(problems, []);
});
