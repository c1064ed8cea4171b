// The package describes its index alone.
declare module 'undici/lib/dispatcher/agent.js' {
  import type { Agent } from 'undici';

  const agentClass: typeof Agent;
  export = agentClass;
}

declare module 'undici/lib/api/api-request.js' {
  import type { Dispatcher } from 'undici';

  /** Called on the dispatcher that it goes through. */
  function request(this: Dispatcher, options: Dispatcher.RequestOptions): Promise<Dispatcher.ResponseData>;
  export = request;
}
