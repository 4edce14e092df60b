// The TypeScript SDK runs a complete session. Arguments: stdio PROGRAM FOLDER, or http URL TOKEN.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const [way, first, second] = process.argv.slice(2)
const require = createRequire(`${process.env.CLIENT_PACKAGES}/`)
const from = async name => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${name}`)))
const { Client } = await from('client/index.js')
const { ElicitRequestSchema, ResourceUpdatedNotificationSchema } = await from('types.js')

let transport
if (way === 'stdio') {
  const { StdioClientTransport } = await from('client/stdio.js')
  const { CLIENT_PACKAGES: _, ...env } = process.env
  transport = new StdioClientTransport({ command: first, args: ['mcp'], cwd: second, env })
} else {
  const { StreamableHTTPClientTransport } = await from('client/streamableHttp.js')
  const headers = { Authorization: `Bearer ${second}` }
  transport = new StreamableHTTPClientTransport(new URL(first), { requestInit: { headers } })
}
const client = new Client({ name: 'story', version: '1' }, { capabilities: { elicitation: {} } })
client.setRequestHandler(ElicitRequestSchema, async request => {
  assert.match(request.params.message, /Who\?/)
  return { action: 'accept', content: { answer: 'World' } }
})
const updated = []
client.setNotificationHandler(ResourceUpdatedNotificationSchema, async note => { updated.push(note.params.uri) })
await client.connect(transport)
const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options)
const text = result => result.content.filter(block => block.type === 'text').map(block => block.text).join('\n')

const { tools } = await client.listTools()
assert.equal(tools.length, 10)

// Open it, read it, edit two cells.
const { resources } = await client.listResources()
const uri = resources.find(resource => resource.uri.startsWith('notebook://')).uri
await client.subscribeResource({ uri })
const read = await call('read', { path: 'a.ipynb' })
const revision = text(read).match(/revision (\w{32})/)[1]
const edited = await call('edit', { path: 'a.ipynb', old: '[3, 1, 2]', new: '[3, 1, 2, 4]', revision })
assert.match(text(edited), /Replaced cell 0/)
await call('notebook', { action: 'edit', path: 'a.ipynb', cell: 'id:cell-3', source: "print('finished', total)" })

// Run it, correct the error, run the stale cells, receive the figure.
const failed = await call('run', { path: 'a.ipynb' })
assert.ok(!failed.isError)
assert.match(text(failed), /^error: cell 1 .*NameError/)
await call('edit', { path: 'a.ipynb', old: 'sum(price)', new: 'sum(prices)' })
const ran = await call('run', { path: 'a.ipynb', stale: true })
assert.ok(!ran.isError, text(ran))
assert.match(text(ran), /finished 10/)
assert.equal(ran.content.filter(block => block.type === 'image').length, 1)

// Cancel a long call; the kernel keeps its variables.
const messages = []
const stop = new AbortController()
const long = call('eval', { code: "import time\nprint('begun')\ntime.sleep(600)", timeout: 0, session: 'a.ipynb' }, {
  signal: stop.signal,
  onprogress: progress => { messages.push(progress.message); stop.abort('enough') },
})
await assert.rejects(long)
assert.match(messages[0], /begun/)
const after = await call('eval', { code: 'total', session: 'a.ipynb' })
assert.match(text(after), /\n10\n/)
assert.match(text(after), /notice \(call_cancelled\)/)

// The user answers an input request of the code.
const asked = await call('eval', { code: "print('Hello', input('Who?'))" })
assert.match(text(asked), /Hello World/)
assert.ok(updated.includes(uri), 'there was no notification of the change')
await client.close()
console.log('the story is over')
