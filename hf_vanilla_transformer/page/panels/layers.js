export default { id: "layers", code: [], render(root, context) {} };
