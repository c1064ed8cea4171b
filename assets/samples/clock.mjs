// A tool in code: the service loads this file because `Host:Modules` names it. Restart the service after a change.
import { defineModule, ToolError } from 'acp';

export default defineModule({
  tools: [
    {
      name: 'clock_now',
      description: 'Tells the current date and time, in UTC or in a time zone such as Europe/Vienna.',
      inputSchema: {
        type: 'object',
        properties: {
          timeZone: { type: 'string', description: 'A name of the IANA time zone database; default UTC' },
        },
        additionalProperties: false,
      },
      effect: 'Read',
      async execute({ timeZone = 'UTC' }) {
        try {
          // The time with its zone, as RFC 9557 writes it: 2026-03-01T14:05:09+01:00[Europe/Vienna]
          return Temporal.Now.zonedDateTimeISO(timeZone).toString({ smallestUnit: 'second' });
        } catch {
          // A ToolError's message reaches the model, so that it can try again; any other error only by its class.
          throw new ToolError(`There is no time zone "${timeZone}".`);
        }
      },
    },
  ],
});
