import assert from 'node:assert/strict';
import { overHttp } from '../../support/app.ts';
import { refusal } from '../runs/run-calls.ts';
import { skill } from './skill-bodies.ts';

overHttp('SKILL-6 each limit of a skill is the configured one, and the refusal names it', async (open) => {
  const app = await open({
    service: {
      Skills: {
        MaxInstructionsLength: 7,
        MaxResourceContentLength: 6,
        MaxResourcesPerSkill: 2,
        Scripts: { MaxScriptContentLength: 5, MaxScriptsPerSkill: 1, Interpreters: { sh: '/bin/sh' } },
      },
    },
  });
  const refused = async (more: Parameters<typeof skill>[1]): Promise<string[] | undefined> => {
    const body = skill('pdf', { instructions: 'Do it.', ...more });
    const problem = await refusal(app.client.skills.save({ params: { name: 'pdf' }, body }));
    return problem.errors?.map(({ path, message }) => `${path} ${message}`);
  };
  const text = (size: number) => 'x'.repeat(size);
  const resources = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ name: `r${index}`, content: '' }));
  const script = (name: string, size = 5) => ({ name, extension: 'sh', content: text(size) });
  assert.deepEqual(
    [
      await refused({ instructions: text(8) }),
      await refused({ resources: [{ name: 'r', content: text(7) }] }),
      await refused({ resources: resources(3) }),
      await refused({ scripts: [script('s', 6)] }),
      await refused({ scripts: [script('s'), script('t')] }),
    ],
    [
      ['instructions must have at most 7 bytes (Service:Skills:MaxInstructionsLength), and has 8'],
      ['resources[0].content must have at most 6 bytes (Service:Skills:MaxResourceContentLength), and has 7'],
      ['resources must have at most 2 entries (Service:Skills:MaxResourcesPerSkill), and has 3'],
      ['scripts[0].content must have at most 5 bytes (Service:Skills:Scripts:MaxScriptContentLength), and has 6'],
      ['scripts must have at most 1 entries (Service:Skills:Scripts:MaxScriptsPerSkill), and has 2'],
    ],
  );
  const largest = { instructions: text(7), resources: resources(2), scripts: [script('s')] };
  const saved = await app.client.skills.save({ params: { name: 'pdf' }, body: skill('pdf', largest) });
  assert.equal(saved.status, 201);
});
