/**
 * `npm run test:fleet -- --arrivals --minutes 10`: one of two processes is killed again and again while work arrives by
 * schedules, batches and triggers and is told by webhooks; then whether anything was lost, or done twice.
 */
import process from 'node:process';
import { parseArgs } from 'node:util';
import { arrive } from './arrivals/arrivals.ts';

const { values } = parseArgs({
  options: {
    arrivals: { type: 'boolean' },
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    items: { type: 'string', default: '200' },
  },
});
const seed = Number(values.seed);
console.log(`Seed ${seed}`);
const { arrivals, kills, requests, errors, violations } = await arrive({
  seed,
  seconds: Number(values.minutes) * 60,
  items: Number(values.items),
  loaders: 2,
  tell: (line) => console.log(`${new Date().toISOString().slice(11, 19)}  ${line}`),
});
const { schedules, jobs, items, calls, runs, deliveries, requests: received, standstills } = arrivals;
const timed = new Set(schedules.map(({ id }) => id));
const occurrences = jobs.filter(({ scheduleId }) => scheduleId !== null && timed.has(scheduleId)).length;
const unknown = items.filter(({ status }) => status === 'Failed').length;
const lostAnswers = [...calls.values()].filter(({ accepted }) => accepted.length === 0).length;
console.log(
  `${kills} kills; ${occurrences} occurrences of ${timed.size} schedules and ${jobs.length - occurrences} other batches with ${items.length} items, ${unknown} of unknown outcome; ${runs.length} runs.`,
);
console.log(
  `${calls.size} calls of triggers in ${requests} requests, ${lostAnswers} accepted by an answer that was lost; ${deliveries.length} deliveries in ${received.length} requests.`,
);
for (const { from, to } of standstills) console.log(`The machine stood still for ${Math.round((to - from) / 1000)} s.`);
for (const error of new Set(errors)) console.log(`logged: ${error.slice(0, 300)}`);
for (const [name, same] of Map.groupBy(violations, (violation) => violation.name)) {
  console.log(`FOUND ${name}, ${same.length} times`);
  for (const { about } of same.slice(0, 10)) console.log(`  ${about}`);
}
console.log(violations.length === 0 ? 'Nothing was lost or done twice.' : `${violations.length} violations.`);
process.exitCode = violations.length === 0 ? 0 : 1;
