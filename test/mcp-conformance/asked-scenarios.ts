import { readdirSync, readFileSync, unlinkSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ClientScenario, runClientScenario } from './client-scenario.ts';

// All at once would only keep each other waiting.
const sideBySide = 4;
const lookEveryMs = 20;

const answerTo = async (scenario: ClientScenario): Promise<string> => {
  try {
    await runClientScenario(scenario);
    return '0\n';
  } catch (error) {
    return `1\n${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`;
  }
};

/** Does what `client.sh` asks for in a folder, until it is stopped. */
export const answerScenarios = (folder: string): (() => void) => {
  const waiting: string[] = [];
  let underway = 0;

  const next = (): void => {
    if (underway >= sideBySide) return;
    const file = waiting.shift();
    if (file === undefined) return;
    underway += 1;
    const [name = '', endpoint = '', context = '{}'] = readFileSync(file, 'utf8').split('\n');
    unlinkSync(file);
    void answerTo({ name, endpoint, context: JSON.parse(context) })
      .then((answer) => writeFile(file.replace(/scenario$/, 'answer'), answer))
      .finally(() => {
        underway -= 1;
        next();
      });
  };

  const timer = setInterval(() => {
    for (const file of readdirSync(folder))
      if (file.endsWith('.scenario') && !waiting.includes(join(folder, file))) waiting.push(join(folder, file));
    for (let free = sideBySide - underway; free > 0; free -= 1) next();
  }, lookEveryMs);
  return () => clearInterval(timer);
};
