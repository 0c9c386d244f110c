export default { id: "training", code: [], render(root, context) {} };
